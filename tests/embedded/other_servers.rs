//! Against servers that differ from ZooKeeper's as those of ClickHouse Keeper do: what holds, and what ends
//! how.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

use lockkeeper::manager::State;
use lockkeeper::znodes::{CreateMode, Version};
use lockkeeper::{ChildrenView, ConnectionManager, Mutex, NodeView, RwLock, Semaphore, TreeView};
use lockkeeper_testserver::fault::{Passed, Subject};
use lockkeeper_testserver::{Fault, Op, TestServer, When};

use crate::limit::within;
use crate::oracle::Oracle;
use crate::server_fixture::{LOCK, TICK, builder, servers};

/// Without breaks, no session ends.
const LONG: Duration = Duration::from_secs(30);

async fn start() -> TestServer {
    let builder = servers().tick(TICK).session_timeouts(TICK * 2, Duration::from_secs(60));
    builder.like_clickhouse().start().await.unwrap()
}

async fn client(server: &TestServer, session: Duration) -> ConnectionManager {
    builder(&server.connect_string()).session_timeout(session).connect().await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_of_every_kind_exclude_each_other_while_the_connections_live() {
    let server = start().await;
    let (oracle, inside) = (Arc::<Oracle>::default(), Arc::<AtomicI32>::default());
    let mut tasks = Vec::new();
    for manager in [client(&server, LONG).await, client(&server, LONG).await] {
        let (oracle, inside) = (Arc::clone(&oracle), Arc::clone(&inside));
        tasks.push(tokio::spawn(async move {
            let (mutex, rw) =
                (Mutex::new(&manager, LOCK).unwrap(), RwLock::new(&manager, "/locks/rw").unwrap());
            let semaphore = Semaphore::new(&manager, "/locks/semaphore", 2).unwrap();
            for _ in 0..5 {
                let held = oracle.enter("a holder", Box::new(mutex.acquire().await.unwrap()));
                held.release().await.unwrap().unwrap();
                let writing = rw.write().await.unwrap();
                assert_eq!(inside.swap(-1, Ordering::SeqCst), 0, "a writer beside others");
                tokio::task::yield_now().await;
                inside.store(0, Ordering::SeqCst);
                writing.release().await.unwrap();
                let reading = rw.read().await.unwrap();
                assert!(inside.fetch_add(1, Ordering::SeqCst) >= 0, "a reader beside a writer");
                tokio::task::yield_now().await;
                inside.fetch_sub(1, Ordering::SeqCst);
                reading.release().await.unwrap();
                semaphore.acquire().await.unwrap().release().await.unwrap();
            }
        }));
    }
    for task in tasks {
        within("all grants", task).await.unwrap().unwrap();
    }
    oracle.verdict().unwrap();
}

/// Each break replaces every session. A holder loses its hold, and contenders start over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_exclude_each_other_also_when_every_connection_breaks_and_sessions_are_replaced() {
    let server = start().await;
    let oracle = Arc::<Oracle>::default();
    let has_ended = Arc::new(AtomicBool::new(false));
    let mut tasks = Vec::new();
    for _ in 0..2 {
        let manager = client(&server, Duration::from_secs(2)).await;
        let (oracle, has_ended) = (Arc::clone(&oracle), Arc::clone(&has_ended));
        tasks.push(tokio::spawn(async move {
            let mutex = Mutex::new(&manager, LOCK).unwrap();
            let mut grants = 0;
            while !has_ended.load(Ordering::Relaxed) {
                let held = oracle.enter("a holder", Box::new(mutex.acquire().await.unwrap()));
                tokio::task::yield_now().await;
                drop(held.release().await);
                grants += 1;
            }
            (manager, grants)
        }));
    }
    for _ in 0..3 {
        // Both are granted between the breaks: a new node is in the queue.
        let before = server.inspect(|machine| machine.zxid());
        within("progress", server.wait_until(|machine| machine.zxid() > before + 20)).await.unwrap();
        server.drop_connections();
    }
    has_ended.store(true, Ordering::Relaxed);
    for task in tasks {
        let (manager, grants) = within("the end of the task", task).await.unwrap().unwrap();
        assert!(grants > 0 && !matches!(manager.state(), State::Closed));
    }
    oracle.verdict().unwrap();
}

/// An event names the root of the view, whatever has changed.
#[tokio::test]
async fn views_show_every_change_one_read_after_its_event() {
    let server = start().await;
    let (manager, other) = (client(&server, LONG).await, client(&server, LONG).await);
    let znodes = other.znodes();
    for path in ["/tree", "/tree/a", "/tree/a/b"] {
        znodes.create(path, "0", CreateMode::Persistent).await.unwrap();
    }
    let tree = TreeView::new(&manager, "/tree").unwrap();
    let children = ChildrenView::new(&manager, "/tree").unwrap();
    within("the first load", async { tokio::join!(tree.ready(), children.ready()) })
        .await
        .unwrap()
        .0
        .unwrap();
    let shows = async |path: &str, data: Option<&'static str>| {
        let mut changes = tree.changes();
        let shown = async {
            while tree.snapshot().get(path).map(|node| node.data().to_vec()) != data.map(Vec::from) {
                changes.next().await;
            }
        };
        within(&format!("{path} with {data:?}"), shown).await.unwrap();
    };
    znodes.write("/tree/a/b", "1", Version::Any).await.unwrap();
    shows("a/b", Some("1")).await;
    znodes.create("/tree/a/b/c", "2", CreateMode::Persistent).await.unwrap();
    shows("a/b/c", Some("2")).await;
    znodes.delete("/tree/a/b/c").await.unwrap();
    shows("a/b/c", None).await;
    znodes.write("/tree/a", "3", Version::Any).await.unwrap();
    shows("a", Some("3")).await;
    let mut changes = children.changes();
    let shown = async {
        while children.snapshot().get("a").is_none_or(|node| node.data() != b"3") {
            changes.next().await;
        }
    };
    within("the child", shown).await.unwrap();
}

/// The session of views only reads, and it pings only while it is idle.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_view_whose_session_ends_as_it_only_reads_shows_every_later_change() {
    let builder = servers().tick(TICK).session_timeouts(TICK * 2, Duration::from_secs(60));
    let servers = builder.like_clickhouse().start_ensemble(2).await.unwrap();
    let [leader, follower] = [0, 1].map(|index| servers.server(index).unwrap());
    let manager = client(follower, Duration::from_secs(1)).await;
    let writer = client(leader, LONG).await;
    let znodes = writer.znodes();
    znodes.create("/node", "0", CreateMode::Persistent).await.unwrap();
    let view = NodeView::new(&manager, "/node").unwrap();
    within("the first read", view.ready()).await.unwrap().unwrap();
    let first = manager.views_session_id().unwrap();
    let mut changes = view.changes();
    let mut number = 0;
    // Each write is followed by a read of the view.
    let mut write = async || {
        number += 1;
        znodes.write("/node", number.to_string(), Version::Any).await.unwrap();
        let shown = async {
            while view.node().is_none_or(|node| node.data() != number.to_string().as_bytes()) {
                changes.next().await;
            }
        };
        within("the write", shown).await.unwrap();
    };
    let ended = async {
        while leader.sessions().contains(&first) {
            write().await;
        }
    };
    within("the end of the session", ended).await.unwrap();
    write().await;
}

/// As ClickHouse Keeper before 25.12.
#[tokio::test]
async fn a_view_without_watches_reads_from_time_to_time() {
    let builder = servers().tick(TICK).session_timeouts(TICK * 2, Duration::from_secs(60));
    let server = builder.like_clickhouse().unknown([Op::AddWatch, Op::GetEphemerals]).start().await.unwrap();
    let (manager, other) = (client(&server, Duration::from_secs(4)).await, client(&server, LONG).await);
    let view = ChildrenView::new(&manager, "/tree").unwrap();
    other.znodes().create("/tree", "", CreateMode::Persistent).await.unwrap();
    other.znodes().create("/tree/a", "1", CreateMode::Persistent).await.unwrap();
    let mut changes = view.changes();
    let shown = async {
        while view.snapshot().get("a").is_none() {
            changes.next().await;
        }
    };
    within("the child", shown).await.unwrap();
    // What the servers do not have is not asked for at each comparison.
    let transcript = server.transcript();
    let read = server.fault(When::op(Op::GetData).path("/tree").always(), Fault::DelayReply(Duration::ZERO));
    within("comparisons", read.hit_times(3)).await.unwrap();
    let passed = transcript.passed();
    let is = |passed: &Passed, op| passed.subject == Subject::Request(op);
    // A transaction on the root alone confirms a lease.
    let asks = |passed: &&Passed| is(passed, Op::AddWatch) || is(passed, Op::Multi) && passed.paths != ["/"];
    let again = passed.iter().filter(asks).count();
    assert_eq!(again, 0, "{passed:?}");
}
