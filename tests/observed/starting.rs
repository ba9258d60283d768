//! A start that does not succeed, and the logs of a session that ends out of sight.

use std::time::Duration;

use lockkeeper::error::ConnectError;
use lockkeeper::manager::State;
use lockkeeper::{ConnectionManager, Mutex};
use lockkeeper_tests::{Timing, eventually};
use lockkeeper_testserver::TestServer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::Instant;

use crate::seen::{Entry, Seen};
use crate::{SESSION, builder, connected, server};

const UNUSABLE: &str = "no session yet: a server cannot be used";

/// Long enough for a look at the servers.
const SHORTLY: Duration = Duration::from_millis(2_500);

/// Tries to connect until the first warning. Returns the warning, and the error of an attempt that ends after
/// it.
async fn refused(servers: &str) -> (Entry, String) {
    let (seen, _listening) = Seen::begin();
    let begun = Instant::now();
    let connecting =
        ConnectionManager::builder(servers).connect_deadline(Timing::under_load(SHORTLY)).connect();
    let warned = async {
        let warnings = async || seen.events(UNUSABLE).into_iter().next();
        let warning = eventually("a warning", Timing::settle(), warnings).await.unwrap();
        println!("warned after {:?}", begun.elapsed());
        warning
    };
    let (warning, refused) = tokio::join!(warned, connecting);
    let Err(error @ ConnectError::Timeout { .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(warning.level, "WARN");
    (warning, error.to_string())
}

#[track_caller]
fn assert_named(answer: &(Entry, String), server: &str, cause: &str) {
    let (warning, error) = answer;
    assert!(warning.field("server").contains(server), "{warning:?}");
    assert!(warning.field("cause").contains(cause), "{warning:?}");
    assert!(error.contains(server) && error.contains(cause), "{error}");
}

#[tokio::test]
async fn a_refused_port_is_warned_of_and_is_in_the_error() {
    assert_named(&refused("127.0.0.1:1").await, "127.0.0.1:1", "the connection is refused");
}

#[tokio::test]
async fn a_wrong_host_name_is_warned_of_and_is_in_the_error() {
    // Reserved for names that do not exist (RFC 6761).
    let answer = refused("zk.invalid:2181").await;
    // A resolver that is out of reach gives no answer in time.
    let cause = if answer.1.contains("no answer") { "no answer" } else { "the name cannot be resolved" };
    assert_named(&answer, "zk.invalid:2181", cause);
}

/// A port that expects TLS closes the connection of a client without TLS.
#[tokio::test]
async fn a_port_that_expects_tls_is_warned_of_and_is_in_the_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let serving = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut record = [0; 5];
            let _ = stream.read_exact(&mut record).await;
            // The alert that the record is unexpected.
            let _ = stream.write_all(&[0x15, 3, 3, 0, 2, 2, 10]).await;
        }
    });
    assert_named(&refused(&address).await, &address, "does it expect TLS");
    serving.abort();
}

#[tokio::test]
async fn a_service_that_is_no_zookeeper_is_warned_of_and_is_in_the_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let serving = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    assert_named(&refused(&address).await, &address, "no ZooKeeper server");
    serving.abort();
}

#[tokio::test]
async fn each_server_that_cannot_be_used_has_a_warning_of_its_own_and_again() {
    let (seen, _listening) = Seen::begin();
    let builder = ConnectionManager::builder("127.0.0.1:1,127.0.0.1:2").connect_deadline(SHORTLY * 10);
    let connecting = tokio::spawn(builder.connect());
    let warnings = async || {
        let of = |server: &str| {
            seen.events(UNUSABLE).into_iter().filter(|event| event.field("server").ends_with(server)).count()
        };
        (of(":1") >= 2 && of(":2") >= 2).then_some(())
    };
    eventually("two warnings for each", Timing::settle(), warnings).await.unwrap();
    connecting.abort();
}

#[tokio::test]
async fn a_chroot_that_does_not_exist_is_warned_of_and_refused_on_request() {
    let (seen, _listening) = Seen::begin();
    let server = TestServer::start().await.unwrap();
    let servers = format!("{}/shpo", server.connect_string());
    let warnings = || seen.all().into_iter().filter(|entry| entry.level == "WARN").collect::<Vec<_>>();

    let refused = ConnectionManager::builder(&servers).existing_chroot().connect().await;
    let Err(error @ ConnectError::NoChroot { .. }) = refused else { panic!("{refused:?}") };
    assert!(error.to_string().contains("/shpo"), "{error}");
    assert_eq!((warnings().len(), warnings()[0].field("chroot")), (1, "/shpo"));

    let manager = ConnectionManager::connect(&servers).await.unwrap();
    let warned = async || (warnings().len() == 2).then_some(());
    eventually("a warning", Timing::settle(), warned).await.unwrap();
    Mutex::new(&manager, "/lock").unwrap().acquire().await.unwrap().release().await.unwrap();
    manager.shutdown().await.unwrap();

    let again = ConnectionManager::builder(&servers).existing_chroot().connect().await.unwrap();
    again.shutdown().await.unwrap();
    assert_eq!(warnings().len(), 2);
}

#[tokio::test]
async fn a_suspended_connection_is_logged_with_its_holds_and_the_rest_of_the_lease() {
    let (seen, _listening) = Seen::begin();
    let (server, manager) = connected().await;
    let mutex = Mutex::new(&manager, "/lock").unwrap();
    let guard = mutex.acquire().await.unwrap();
    server.drop_connections();
    let suspended = async || seen.events("suspended").into_iter().next();
    let event = eventually("suspended", Timing::settle(), suspended).await.unwrap();
    assert_eq!(event.field("held"), "1");
    assert!(event.field("lease_left").ends_with('s'), "{event:?}");
    guard.release().await.unwrap();
    manager.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_session_whose_end_no_server_has_reported_is_not_logged_as_expired() {
    let (seen, _listening) = Seen::begin();
    let server = server().await;
    let manager = builder(&server).connect().await.unwrap();
    let mut transitions = manager.transitions();
    server.stop().await;
    loop {
        let state = transitions.next().await.unwrap().state;
        if let State::Lost(_, reason) = state {
            assert_eq!(reason, lockkeeper::error::LossReason::NoAnswer);
            break;
        }
    }
    let lost = &seen.events("session lost")[0];
    assert!(lost.field("reason").contains("no server answered"), "{lost:?}");
    let ours = seen.all().into_iter().filter(|entry| entry.target.starts_with("lockkeeper"));
    assert!(!format!("{:?}", ours.collect::<Vec<_>>()).contains("expired"));
    assert!(SESSION < Timing::settle());
}
