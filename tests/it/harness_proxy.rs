//! The harness's proxies strike the chosen message, and nothing else.

use std::time::Duration;

use lockkeeper_tests::{
    CreateMode, Direction, Ensemble, Fate, HarnessError, LentEnsemble, Match, Message, OpCode, Proxies,
    RawClient, Timing, eventually, left_out,
};
use tokio::net::TcpStream;

type Outcome = Result<(), HarnessError>;

const PERSISTENT: CreateMode = CreateMode::Persistent;

/// Proxies before servers of the test's own, a client behind them, and a client that connects to the server
/// directly.
struct ProxyFixture {
    ensemble: LentEnsemble,
    proxies: Proxies,
    client: RawClient,
    oracle: RawClient,
}

impl ProxyFixture {
    async fn set(servers: usize) -> Result<Self, HarnessError> {
        let ensemble = Ensemble::builder().servers(servers).lend().await?;
        let proxies = Proxies::start(&ensemble).await?;
        let client = RawClient::connect(proxies.proxy(0).address()).await?;
        let oracle = ensemble.raw().await?;
        Ok(Self { ensemble, proxies, client, oracle })
    }
}

#[tokio::test]
async fn a_create_whose_reply_is_dropped_is_committed() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ProxyFixture { ensemble: _ensemble, proxies, mut client, mut oracle } = ProxyFixture::set(1).await?;
    let second = Match::new().op(OpCode::Create2).path_contains("lock-").nth(2);
    let fault = proxies.on(second).drop_reply_and_cut();

    client.create("/lock-1", b"", PERSISTENT).await?;
    client.create("/other", b"", PERSISTENT).await?;
    assert!(!fault.has_triggered());
    assert!(client.create("/lock-2", b"", PERSISTENT).await.is_err());

    let struck = fault.triggered().await?;
    assert_eq!((struck.message, struck.op, struck.fate), (Message::Reply, OpCode::Create2, Fate::Dropped));
    assert_eq!((struck.path.as_deref(), struck.error), (Some("/lock-2"), 0));
    assert_eq!(proxies.connections(), 0);
    assert_eq!(oracle.exists("/lock-2").await?.unwrap().czxid, struck.zxid);
    Ok(())
}

#[tokio::test]
async fn a_request_cut_before_the_server_is_not_done() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ProxyFixture { ensemble: _ensemble, proxies, mut client, mut oracle } = ProxyFixture::set(1).await?;
    let fault = proxies.on(Match::new().path_contains("/never")).cut_before_forward();

    client.create("/done", b"", PERSISTENT).await?;
    assert!(client.create("/never", b"", PERSISTENT).await.is_err());
    assert_eq!(fault.triggered().await?.fate, Fate::Dropped);
    oracle.sync("/").await?;
    assert_eq!(oracle.children("/").await?, ["done", "zookeeper"]);
    Ok(())
}

#[tokio::test]
async fn a_held_reply_arrives_when_it_is_released() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ProxyFixture { ensemble: _ensemble, proxies, mut client, mut oracle } = ProxyFixture::set(1).await?;
    let hold = proxies.on(Match::new().op(OpCode::Create2)).hold_reply();
    let create = tokio::spawn(async move { client.create("/a", b"", PERSISTENT).await });

    hold.triggered().await?;
    assert!(oracle.exists("/a").await?.is_some(), "committed before its reply was held");
    assert!(!create.is_finished());
    hold.release();
    create.await.unwrap()?;
    Ok(())
}

#[tokio::test]
async fn a_held_reply_can_be_dropped() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ProxyFixture { ensemble: _ensemble, proxies, mut client, mut oracle } = ProxyFixture::set(1).await?;
    let hold = proxies.on(Match::new().op(OpCode::Create2)).hold_reply();
    let create = tokio::spawn(async move { client.create("/a", b"", PERSISTENT).await });

    hold.triggered().await?;
    hold.drop_and_cut().await?;
    assert!(create.await.unwrap().is_err());
    assert!(oracle.exists("/a").await?.is_some());
    Ok(())
}

#[tokio::test]
async fn a_held_reply_is_dropped_when_its_connection_ends() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ProxyFixture { ensemble: _ensemble, proxies, mut client, .. } = ProxyFixture::set(1).await?;
    let hold = proxies.on(Match::new().op(OpCode::Create2)).hold_reply();
    let create = tokio::spawn(async move { client.create("/a", b"", PERSISTENT).await });

    hold.triggered().await?;
    proxies.cut().await?;
    assert!(create.await.unwrap().is_err());
    assert_eq!(hold.drop_and_cut().await?.fate, Fate::Dropped);
    assert_eq!(proxies.log().last().map(|record| record.fate), Some(Fate::Dropped));
    Ok(())
}

#[tokio::test]
async fn a_held_request_is_done_when_it_is_released() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ProxyFixture { ensemble: _ensemble, proxies, mut client, mut oracle } = ProxyFixture::set(1).await?;
    let hold = proxies.on(Match::new().op(OpCode::Create2)).hold_request();
    let create = tokio::spawn(async move { client.create("/a", b"", PERSISTENT).await });

    hold.triggered().await?;
    oracle.sync("/").await?;
    assert_eq!(oracle.exists("/a").await?, None);
    hold.release();
    create.await.unwrap()?;
    assert!(oracle.exists("/a").await?.is_some());
    Ok(())
}

#[tokio::test]
async fn a_watch_event_can_be_held() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ProxyFixture { ensemble: _ensemble, proxies, mut client, mut oracle } = ProxyFixture::set(1).await?;
    client.watch("/a").await?;
    let hold = proxies.on(Match::new().op(OpCode::Event).path_contains("/a")).hold_reply();
    oracle.create("/a", b"", PERSISTENT).await?;

    let event = hold.triggered().await?;
    assert_eq!((event.message, event.path.as_deref()), (Message::Event, Some("/a")));
    assert!(!proxies.log().iter().any(|record| record.message == Message::Event));
    hold.release();
    client.exists("/a").await?;
    assert!(proxies.log().iter().any(|record| record.message == Message::Event));
    Ok(())
}

#[tokio::test]
async fn a_held_direction_forwards_nothing_and_breaks_nothing() -> Outcome {
    if left_out() {
        return Ok(());
    }
    for direction in [Direction::ToServer, Direction::ToClient, Direction::Both] {
        let ProxyFixture { ensemble: _ensemble, proxies, mut client, mut oracle } =
            ProxyFixture::set(1).await?;
        proxies.hold(direction);
        proxies.clear_log();
        let create = tokio::spawn(async move { client.create("/a", b"", PERSISTENT).await });
        if direction == Direction::ToClient {
            let committed = async || proxies.log().ops().contains(&OpCode::Create2).then_some(());
            eventually("the request passes", Timing::event(), committed).await?;
        }
        oracle.sync("/").await?;
        assert_eq!(proxies.log().iter().filter(|record| record.message == Message::Reply).count(), 0);
        assert_eq!(proxies.log().is_empty(), direction != Direction::ToClient);
        assert_eq!(proxies.connections(), 1);

        proxies.release(direction);
        create.await.unwrap()?;
        assert!(oracle.exists("/a").await?.is_some());
    }
    Ok(())
}

#[tokio::test]
async fn a_cut_ends_present_connections_and_takes_new_ones() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ProxyFixture { ensemble: _ensemble, proxies, mut client, .. } = ProxyFixture::set(1).await?;
    let (session, password) = (client.session(), client.password().to_vec());
    proxies.cut().await?;
    assert_eq!(proxies.connections(), 0);
    assert!(client.exists("/").await.is_err());

    let again = RawClient::attach(proxies.proxy(0).address(), session, &password).await?;
    assert_eq!(again.session(), session);
    Ok(())
}

#[tokio::test]
async fn a_refusing_proxy_is_as_a_server_that_is_down() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ProxyFixture { ensemble: _ensemble, proxies, mut client, .. } = ProxyFixture::set(1).await?;
    let address = proxies.proxy(0).address();
    for _ in 0..3 {
        proxies.refuse().await?;
        assert!(client.exists("/").await.is_err());
        let refused = TcpStream::connect(address).await.unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
        proxies.accept().await?;
        client = RawClient::connect(address).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_session_that_the_proxy_has_seen_can_be_expired() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ProxyFixture { ensemble, proxies, mut client, mut oracle } = ProxyFixture::set(3).await?;
    client.create("/mine", b"", CreateMode::Ephemeral).await?;
    let [session] = &proxies.sessions()[..] else { panic!("one client, one session") };
    assert_eq!((session.id, &session.password[..]), (client.session(), client.password()));

    proxies.expire_session(session.id).await?;
    assert!(proxies.sessions().is_empty());
    assert_eq!(oracle.exists("/mine").await?, None);
    assert!(!ensemble.dump().await?.sessions.contains(&session.id));
    let unknown = proxies.expire_session(session.id).await;
    assert!(matches!(unknown, Err(HarnessError::UnknownSession { .. })));
    Ok(())
}

#[tokio::test]
async fn a_severed_session_expires_by_itself() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ProxyFixture { ensemble: _ensemble, proxies, mut oracle, .. } = ProxyFixture::set(1).await?;
    let address = proxies.proxy(0).address();
    let mut client = RawClient::connect_for(address, Duration::from_secs(1)).await?;
    client.create("/mine", b"", CreateMode::Ephemeral).await?;
    proxies.sever_until_expired(client.session()).await?;
    assert_eq!(oracle.exists("/mine").await?, None);
    let refused = RawClient::attach(address, client.session(), client.password()).await;
    assert!(matches!(refused, Err(HarnessError::SessionRefused { .. })));
    Ok(())
}

#[tokio::test]
async fn the_log_has_the_messages_in_their_order() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ProxyFixture { ensemble: _ensemble, proxies, mut client, .. } = ProxyFixture::set(1).await?;
    proxies.clear_log();
    client.create("/a", b"", PERSISTENT).await?;
    client.children("/").await?;
    assert!(client.delete("/none").await.is_err());

    let log = proxies.log();
    assert_eq!(log.ops(), [OpCode::Create2, OpCode::GetChildren, OpCode::Delete]);
    assert!(log.is_sorted_by_key(|record| record.at));
    assert!(log.requests().all(|request| request.in_flight == 0 && request.session == client.session()));
    let errors: Vec<i32> = log.requests().map(|request| log.reply_to(request).unwrap().error).collect();
    assert_eq!(errors, [0, 0, -101]);
    assert_eq!(proxies.requests()[&(client.session(), OpCode::Delete)], 1);
    client.close().await?;
    assert!(proxies.sessions().is_empty());
    Ok(())
}

#[tokio::test]
async fn a_client_behind_proxies_survives_a_killed_leader() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ensemble = Ensemble::builder().servers(3).lend().await?;
    let proxies = Proxies::start(&ensemble).await?;
    let leader = ensemble.leader().await?;
    let mut client = RawClient::connect(proxies.proxy(leader.index()).address()).await?;
    client.create("/mine", b"", CreateMode::Ephemeral).await?;
    leader.kill().await?;
    let gone = async || (proxies.connections() == 0).then_some(());
    eventually("the proxy passes on the end", Timing::event(), gone).await?;

    let next = ensemble.leader().await?.index();
    let (session, password) = (client.session(), client.password().to_vec());
    let mut again = RawClient::attach(proxies.proxy(next).address(), session, &password).await?;
    assert_eq!(again.exists("/mine").await?.unwrap().ephemeral_owner, session);
    assert_eq!(proxies.sessions().last().map(|session| session.server), Some(next));
    Ok(())
}
