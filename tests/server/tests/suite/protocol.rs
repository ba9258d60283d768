//! The server's behaviour towards every client, without faults.

use std::time::Duration;

use lockkeeper_testserver::TestServer;
use tokio::time::sleep;

use crate::raw::{Body, Conn, Fields, op};
use crate::real_server::{JAR, RealServer, four_letters, left_out};

const T: i32 = 10_000;

/// Runs a check against Debian's server, where there is one, and against ours. Both have a tick of 200 ms,
/// allow nodes with a time to live and check for containers every 300 ms.
pub(crate) async fn on_both<F: AsyncFn(&str)>(check: F) {
    if !left_out() {
        let options = ["zookeeper.extendedTypesEnabled=true", "znode.container.checkIntervalMs=300"];
        let real = RealServer::start(200, &options).await;
        check(&real.address).await;
    }
    let builder = TestServer::builder().tick(Duration::from_millis(200)).ttl_nodes(true);
    let ours = builder.container_interval(Duration::from_millis(300)).start().await.unwrap();
    check(&ours.connect_string()).await;
}

#[tokio::test]
async fn emptied_containers_and_overdue_nodes_are_removed_as_on_the_real_server() {
    on_both(async |at| {
        let mut client = Conn::new(at, 4000).await;
        let ttl = |path: &str, ttl: i64| Body::create(path, 5).long(ttl);
        for path in ["/used", "/unused", "/full"] {
            client.ok(op::CREATE_CONTAINER, &Body::create(path, 4)).await;
        }
        for (path, time) in [("/short", 1), ("/long", 1_000_000), ("/short-with-child", 1)] {
            client.ok(op::CREATE_TTL, &ttl(path, time)).await;
            client.call(op::EXISTS, &Body::watch(path, true)).await.unwrap();
        }
        for path in ["/used/x", "/full/x", "/short-with-child/x"] {
            // The short-lived parent may be deleted already: then it is created again together with its
            // child.
            if client.call(op::CREATE, &Body::create(path, 0)).await.unwrap().err != 0 {
                let parent = (op::CREATE_TTL, ttl("/short-with-child", 1));
                client.ok(op::MULTI, &Body::multi(&[parent, (op::CREATE, Body::create(path, 0))])).await;
            }
        }
        client.ok(op::EXISTS, &Body::watch("/used", true)).await;
        client.ok(op::DELETE, &Body::version("/used/x", -1)).await;
        for gone in ["/used", "/short"] {
            while client.call(op::EXISTS, &Body::watch(gone, false)).await.unwrap().err == 0 {
                sleep(Duration::from_millis(20)).await;
            }
            let events = client.drain().await.unwrap();
            assert!(gone == "/short" || events.contains(&(2, gone.to_owned())), "{events:?}");
        }
        for kept in ["/unused", "/full", "/long", "/short-with-child"] {
            client.ok(op::EXISTS, &Body::watch(kept, false)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn odd_requests_end_as_on_the_real_server() {
    on_both(async |at| {
        // The timeout is brought into the range from 2 to 20 ticks.
        for (asked, got) in [(1, 400), (-5, 400), (1000, 1000), (1_000_000, 4000)] {
            assert_eq!(Conn::new(at, asked).await.timeout, got);
        }
        // A number that no operation has is answered, and the connection is closed.
        for unknown in [999, 0, -2, 10] {
            let mut client = Conn::new(at, 4000).await;
            let reply = client.call(unknown, &Body::new()).await.unwrap();
            assert_eq!((reply.err, reply.zxid), (-6, -1), "op {unknown}");
            client.closed().await;
        }
        // An unknown scheme of credentials too.
        let mut client = Conn::new(at, 4000).await;
        let reply =
            client.call(op::AUTH, &Body::new().int(0).str("nonsense").bytes(Some(b"x"))).await.unwrap();
        assert_eq!((reply.err, reply.zxid), (-115, 0));
        client.closed().await;
        // Reconfiguration is off.
        let mut client = Conn::new(at, 4000).await;
        let reconfig = Body::new().str("").str("").str("").long(-1);
        assert_eq!(client.call(op::RECONFIG, &reconfig).await.unwrap().err, -123);
        // A check that fails is answered.
        assert_eq!(client.call(op::CHECK, &Body::version("/nowhere", 0)).await.unwrap().err, -101);
        assert_eq!(client.call(op::CHECK, &Body::version("/", 7)).await.unwrap().err, -103);
        // Frames with impossible lengths, and too short ones, close the connection.
        for bytes in
            [&[0xff, 0xff, 0xff, 0xff][..], &[0, 0x10, 0, 0], &[0, 0, 0, 0], &[0, 0, 0, 4, 0, 0, 0, 1]]
        {
            let mut client = Conn::new(at, 4000).await;
            client.send_raw(bytes).await.unwrap();
            client.closed().await;
        }
        // A client that has seen later transactions is refused.
        let ahead = Conn::attach(at, 4000, 0, &[0; 16], i64::MAX).await;
        assert!(ahead.is_err());
        assert_eq!(four_letters(at, "ruok").await.unwrap(), "imok");
        assert!(four_letters(at, "srvr").await.unwrap().contains("\nMode: standalone\n"));
        assert!(four_letters(at, "mntr").await.unwrap().contains("\nzk_server_state\tstandalone\n"));
    })
    .await;
}

#[tokio::test]
async fn environment_names_the_keys_and_the_version_of_the_real_server() {
    let keys = "zookeeper.version host.name java.version java.vendor java.home java.class.path \
                java.library.path java.io.tmpdir java.compiler os.name os.arch os.version user.name \
                user.home user.dir os.memory.free os.memory.max os.memory.total";
    on_both(async |at| {
        let environment = four_letters(at, "envi").await.unwrap();
        let (title, lines) = environment.split_once('\n').unwrap();
        assert_eq!(title, "Environment:");
        let lines: Vec<_> = lines.lines().map(|line| line.split_once('=').unwrap()).collect();
        let answers: Vec<_> = lines.iter().map(|(key, _)| *key).collect();
        assert_eq!(answers, keys.split_ascii_whitespace().collect::<Vec<_>>());
        // As kazoo reads it.
        assert_eq!(lines[0].1.split('-').next(), Some("3.8.0"));
    })
    .await;
}

#[tokio::test]
async fn create2_in_a_transaction_tells_no_metadata_unless_asked_to_as_later_releases_do() {
    let both =
        Body::multi(&[(op::CREATE2, Body::create("/a", 0)), (op::CREATE_CONTAINER, Body::create("/c", 4))]);
    let kinds = async |at: &str| {
        let mut client = Conn::new(at, 4000).await;
        let reply = client.ok(op::MULTI, &both).await;
        let mut fields = Fields(&reply.body);
        let first = fields.int();
        fields.take(5);
        fields.str();
        if first == op::CREATE2 {
            fields.take(68);
        }
        [first, fields.int()]
    };
    on_both(async |at| assert_eq!(kinds(at).await, [op::CREATE, op::CREATE2])).await;
    let later = TestServer::builder().stat_in_multi(true).start().await.unwrap();
    assert_eq!(kinds(&later.connect_string()).await, [op::CREATE2, op::CREATE2]);
}

#[tokio::test]
async fn event_precedes_the_reply_that_shows_the_change() {
    let server = TestServer::start().await.unwrap();
    let mut client = Conn::new(&server.connect_string(), T).await;
    client.call(op::EXISTS, &Body::watch("/a", true)).await.unwrap();
    let reply = client.ok(op::CREATE, &Body::create("/a", 0)).await;
    assert_eq!(reply.path(), "/a");
    assert_eq!(client.events, [(1, "/a".to_owned())]);
}

#[tokio::test]
async fn an_event_has_the_zxid_of_its_transaction_since_3_9_and_none_before() {
    let check = async |at: &str, sends_zxids: bool| {
        let (mut watcher, mut writer) = (Conn::new(at, T).await, Conn::new(at, T).await);
        watcher.ok(op::ADD_WATCH, &Body::version("/", 1)).await;
        let mut zxids = Vec::new();
        for (op, body) in [
            (op::CREATE, Body::create("/a", 0)),
            (op::SET_DATA, Body::set("/a", b"1", -1)),
            (op::DELETE, Body::version("/a", -1)),
        ] {
            let zxid = writer.ok(op, &body).await.zxid;
            zxids.push(if sends_zxids { zxid } else { -1 });
        }
        assert_eq!(watcher.drain().await.unwrap().len(), 3);
        assert_eq!(watcher.event_zxids, zxids);

        // What happened while the client was away has no transaction, on any server.
        let (seen, none) = (watcher.last_zxid, [""; 0]);
        drop(watcher);
        writer.ok(op::CREATE, &Body::create("/b", 0)).await;
        let mut again = Conn::new(at, T).await;
        let absent = Body::new().long(seen).strs(&none).strs(&["/b"]).strs(&none);
        again.send(op::SET_WATCHES, &absent).await.unwrap();
        again.reply().await.unwrap();
        assert_eq!(again.event_zxids, [-1]);
    };
    for sends_zxids in [false, true] {
        let ours = TestServer::builder().event_zxids(sends_zxids).start().await.unwrap();
        check(&ours.connect_string(), sends_zxids).await;
    }
    if !left_out() {
        let real = RealServer::start_chosen(200, &[]).await;
        check(&real.address, real.version().await >= (3, 9)).await;
    }
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let server = TestServer::start().await.unwrap();
    let mut client = Conn::new(&server.connect_string(), T).await;
    let mut sent = Vec::new();
    for n in 0..1000 {
        sent.push(client.send(op::CREATE2, &Body::create(&format!("/n{n}-"), 3)).await.unwrap());
    }
    for xid in sent {
        let reply = client.reply().await.unwrap();
        assert_eq!((reply.xid, reply.err), (xid, 0));
    }
}

#[tokio::test]
async fn silent_session_ends_by_itself_and_not_before_its_timeout() {
    let server = TestServer::start().await.unwrap();
    let mut client = Conn::new(&server.connect_string(), 300).await;
    // The server hears of the client after this.
    let last_heard = tokio::time::Instant::now();
    client.ok(op::CREATE, &Body::create("/mine", 1)).await;
    server.wait_until(|machine| machine.tree().node("/mine").is_none()).await;
    let lived = last_heard.elapsed();
    assert!(lived >= Duration::from_millis(299), "{lived:?}");
    client.closed().await;
}

#[tokio::test]
async fn container_is_removed_when_it_was_used_and_is_empty() {
    let server = TestServer::start().await.unwrap();
    let mut client = Conn::new(&server.connect_string(), T).await;
    for path in ["/used", "/unused", "/full"] {
        client.ok(op::CREATE_CONTAINER, &Body::create(path, 4)).await;
    }
    client.ok(op::CREATE, &Body::create("/used/x", 0)).await;
    client.ok(op::CREATE, &Body::create("/full/x", 0)).await;
    client.ok(op::DELETE, &Body::version("/used/x", -1)).await;
    client.ok(op::EXISTS, &Body::watch("/used", true)).await;
    server.reap();
    assert_eq!(client.drain().await.unwrap(), [(2, "/used".to_owned())]);
    client.ok(op::EXISTS, &Body::watch("/unused", false)).await;
    client.ok(op::EXISTS, &Body::watch("/full", false)).await;
}

#[tokio::test]
async fn unused_container_is_removed_when_an_age_is_set() {
    let server =
        TestServer::builder().container_max_never_used(Duration::from_secs(300)).start().await.unwrap();
    let mut client = Conn::new(&server.connect_string(), 40_000).await;
    client.ok(op::CREATE_CONTAINER, &Body::create("/unused", 4)).await;
    server.reap();
    assert!(server.inspect(|machine| machine.tree().node("/unused").is_some()));
    server.advance_clock(Duration::from_secs(301));
    assert!(server.inspect(|machine| machine.tree().node("/unused").is_none()));
}

#[tokio::test]
async fn hundred_servers_run_in_one_process_and_stop_when_dropped() {
    let mut servers = Vec::new();
    for _ in 0..100 {
        servers.push(TestServer::start().await.unwrap());
    }
    for server in &servers {
        let mut client = Conn::new(&server.connect_string(), T).await;
        client.ok(op::CREATE, &Body::create("/a", 0)).await;
    }
    let addresses: Vec<_> = servers.iter().map(TestServer::connect_string).collect();
    let mut client = Conn::new(&addresses[0], T).await;
    drop(servers);
    client.closed().await;
    for address in &addresses {
        assert!(Conn::attach(address, T, 0, &[0; 16], 0).await.is_err());
    }
}

#[tokio::test]
async fn server_is_ready_within_50_milliseconds() {
    // Other tests run beside this one, so not each of them.
    let begun = tokio::time::Instant::now();
    loop {
        let started = tokio::time::Instant::now();
        let server = TestServer::start().await.unwrap();
        Conn::new(&server.connect_string(), T).await;
        if started.elapsed() < Duration::from_millis(50) {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
    }
}

/// Creates sequential nodes at the end of the counter, and returns their names and the parent's counters.
async fn count_to_the_end(at: &str) -> Vec<String> {
    let mut client = Conn::new(at, 4000).await;
    let mut answers = Vec::new();
    for (prefix, times) in [("a", 3), ("b", 2), ("a", 1)] {
        for _ in 0..times {
            let reply = client.call(op::CREATE, &Body::create(&format!("/q/{prefix}-"), 2)).await.unwrap();
            answers.push(if reply.err == 0 { reply.path() } else { reply.err.to_string() });
            let stat = client.ok(op::EXISTS, &Body::watch("/q", false)).await;
            let mut fields = Fields(&stat.body);
            fields.take(32);
            let versions = (fields.int(), fields.int(), fields.int());
            fields.take(8);
            answers.push(format!("{versions:?} {} {}", (fields.int(), fields.int()).1, fields.long()));
        }
    }
    let three = ["x", "y", "z"].map(|prefix| (op::CREATE, Body::create(&format!("/q/{prefix}-"), 2)));
    let reply = client.ok(op::MULTI, &Body::multi(&three)).await;
    let mut fields = Fields(&reply.body);
    for _ in three {
        fields.take(9);
        answers.push(fields.str());
    }
    client.ok(op::DELETE, &Body::version("/q/a-2147483645", -1)).await;
    let reply = client.ok(op::CREATE, &Body::create("/q/after-delete-", 3)).await;
    answers.push(reply.path());
    answers
}

#[tokio::test]
async fn counter_ends_as_on_the_real_server() {
    const FIRST: i32 = i32::MAX - 2;
    let ours = TestServer::builder().start().await.unwrap();
    // The real server starts from a snapshot whose newest transaction is the first.
    Conn::new(&ours.connect_string(), 4000).await.ok(op::CREATE, &Body::create("/q", 0)).await;
    ours.set_sequence("/q", FIRST);
    let mut answers = count_to_the_end(&ours.connect_string()).await;
    assert_eq!(answers[0], "/q/a-2147483645");
    assert_eq!(answers[12..15], ["/q/x-2147483647", "/q/y--2147483648", "/q/z--2147483647"]);
    if left_out() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let writer = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peers/FullCounter.java");
    let mut java = tokio::process::Command::new("java");
    java.args(["-XX:TieredStopAtLevel=1", "-cp", JAR, writer]).arg(dir.path()).arg(FIRST.to_string());
    assert!(java.status().await.unwrap().success());
    let real = RealServer::start_with(dir, 200, &[]).await;
    let mut expected = count_to_the_end(&real.address).await;
    // Transaction numbers started elsewhere; everything else is equal.
    for line in answers.iter_mut().chain(&mut expected) {
        if let Some((rest, _)) = line.rsplit_once(' ') {
            *line = rest.to_owned();
        }
    }
    assert_eq!(answers, expected);
}
