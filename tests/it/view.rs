//! Views on Apache ZooKeeper: restarts, expired sessions, an ensemble that loses servers, and locks beside
//! them.

use std::collections::BTreeMap;

use lockkeeper::view::{ViewChanges, ViewNode, ViewState};
use lockkeeper::znodes::{CreateMode, Version};
use lockkeeper::{ConnectionManager, Mutex, NodeView, RwLock, Semaphore, TreeView};
use lockkeeper_tests::{Ensemble, RawClient, Timing, left_out};

use crate::support::{behind_proxy, briefly_behind_proxy, connect};

const ROOT: &str = "/tree";

/// By path below the root: creation zxid, modification zxid and data, read without the library.
async fn tree(oracle: &mut RawClient, root: &str) -> BTreeMap<String, (i64, i64, Vec<u8>)> {
    oracle.sync("/").await.unwrap();
    let (mut found, mut paths) = (BTreeMap::new(), vec![String::new()]);
    while let Some(path) = paths.pop() {
        let whole = if path.is_empty() { root.to_owned() } else { format!("{root}/{path}") };
        let Ok((data, stat)) = oracle.data(&whole).await else { continue };
        for name in oracle.children(&whole).await.unwrap() {
            paths.push(if path.is_empty() { name } else { format!("{path}/{name}") });
        }
        found.insert(path, (stat.czxid, stat.mzxid, data));
    }
    found
}

/// The same of a view, once it shows everything that was committed before.
async fn shown(view: &TreeView) -> BTreeMap<String, (i64, i64, Vec<u8>)> {
    let synced = async {
        loop {
            match view.sync().await {
                Err(error) if error.is_timeout() => {}
                synced => return synced.unwrap(),
            }
        }
    };
    let snapshot = tokio::time::timeout(Timing::settle(), synced).await.expect("a sync");
    let node = |node: &ViewNode| (node.stat().czxid.get(), node.stat().mzxid.get(), node.data().to_vec());
    snapshot.iter().map(|(path, found)| (path.to_owned(), node(found))).collect()
}

/// Reads until the view has ended, and makes a copy of the differences alone: by path, creation and
/// modification zxid. Returns the number of the differences as well.
async fn read_all(mut changes: ViewChanges) -> (usize, BTreeMap<String, (i64, i64)>) {
    let state = |node: &ViewNode| (node.stat().czxid.get(), node.stat().mzxid.get());
    let (mut count, mut copy) = (0, BTreeMap::new());
    while let Some(difference) = changes.next().await {
        count += 1;
        for change in difference.changes() {
            let (had, here) = (change.before().map(|node| state(node)), copy.get(change.path()).copied());
            assert_eq!(had, here, "a change leads from another state than the last one to: {change:?}");
            match change.node().map(|node| state(node)) {
                None => drop(copy.remove(change.path())),
                Some(now) => {
                    assert!(
                        had.is_none_or(|(_, before)| before < now.1),
                        "reported twice, or older: {change:?}"
                    );
                    copy.insert(change.path().to_owned(), now);
                }
            }
        }
        let shown = difference.snapshot().iter().map(|(path, node)| (path.to_owned(), state(node)));
        assert_eq!(copy, shown.collect(), "a change is missing");
    }
    (count, copy)
}

async fn becomes(view: &TreeView, state: ViewState) {
    let mut changes = view.changes();
    let reached = async {
        while changes.snapshot().state() != state {
            changes.next().await.expect("the view has not ended");
        }
    };
    tokio::time::timeout(Timing::settle(), reached).await.expect("the state");
}

#[tokio::test]
async fn a_view_shows_what_happened_during_a_break_and_a_restart() {
    if left_out() {
        return;
    }
    let (ensemble, proxies, manager) = behind_proxy().await;
    let mut oracle = ensemble.raw().await.unwrap();
    for path in ["", "/a", "/a/1", "/a/2", "/b"] {
        oracle
            .create(&format!("{ROOT}{path}"), b"before", lockkeeper_tests::CreateMode::Persistent)
            .await
            .unwrap();
    }
    let view = TreeView::new(&manager, ROOT).unwrap();
    view.ready().await.unwrap();
    let mut changes = view.changes();
    proxies.refuse().await.unwrap();
    becomes(&view, ViewState::Stale).await;
    // No server replays the events of a persistent watch (ZOOKEEPER-4698).
    oracle.set_data("/tree/a", b"after").await.unwrap();
    oracle.delete("/tree/b").await.unwrap();
    oracle.create("/tree/b", b"before", lockkeeper_tests::CreateMode::Persistent).await.unwrap();
    oracle.delete("/tree/a/2").await.unwrap();
    proxies.accept().await.unwrap();
    assert_eq!(shown(&view).await, tree(&mut oracle, ROOT).await);
    let mut reported = Vec::new();
    while reported.is_empty() {
        let difference = changes.next().await.unwrap();
        reported.extend(difference.changes().iter().map(|change| format!("{change:?}")));
    }
    let kinds = ["Updated { path: \"a\"", "Deleted { path: \"a/2\"", "Recreated { path: \"b\""];
    assert!(
        reported.len() == 3 && reported.iter().zip(kinds).all(|(reported, kind)| reported.starts_with(kind)),
        "{reported:?}"
    );

    ensemble.server(0).kill().await.unwrap();
    becomes(&view, ViewState::Stale).await;
    ensemble.server(0).restart().await.unwrap();
    let mut oracle = ensemble.raw().await.unwrap();
    oracle.set_data("/tree/a", b"restarted").await.unwrap();
    assert_eq!(shown(&view).await, tree(&mut oracle, ROOT).await);
}

#[tokio::test]
async fn a_view_continues_in_the_next_session() {
    if left_out() {
        return;
    }
    let (ensemble, proxies, manager) = briefly_behind_proxy().await;
    let mut oracle = ensemble.raw().await.unwrap();
    let view = NodeView::new(&manager, "/config").unwrap();
    view.ready().await.unwrap();
    let sessions = ensemble.server(0).connections().await.unwrap();
    let sessions: Vec<i64> = sessions.iter().filter_map(|of| of.session).collect();
    proxies.refuse().await.unwrap();
    for session in sessions.into_iter().filter(|session| *session != oracle.session()) {
        ensemble.session_gone(session).await.unwrap();
    }
    oracle.create("/config", b"later", lockkeeper_tests::CreateMode::Persistent).await.unwrap();
    proxies.accept().await.unwrap();
    let mut changes = view.changes();
    let seen = async {
        while changes.snapshot().root().is_none() {
            changes.next().await.expect("the view has not ended");
        }
    };
    tokio::time::timeout(Timing::settle(), seen).await.expect("the node");
    assert_eq!(view.node().unwrap().data(), b"later");
}

#[tokio::test]
async fn a_view_of_an_ensemble_misses_nothing_while_servers_are_killed() {
    if left_out() {
        return;
    }
    let ensemble = Ensemble::builder().servers(3).lend().await.unwrap();
    let (viewer, writer) =
        (connect(&ensemble.connect_string()).await, connect(&ensemble.connect_string()).await);
    let view = TreeView::new(&viewer, ROOT).unwrap();
    let (eager, lazy) = (tokio::spawn(read_all(view.changes())), view.changes());
    let writing = tokio::spawn(write_without_end(writer.clone()));
    for server in 0..3 {
        ensemble.server(server).kill().await.unwrap();
        let mut changes = view.changes();
        let goes_on = async {
            // The writes of the remaining two servers are seen.
            while changes.next().await.expect("the view has not ended").changes().is_empty() {}
        };
        tokio::time::timeout(Timing::settle(), goes_on).await.expect("a change");
        ensemble.server(server).restart().await.unwrap();
        ensemble.settled().await.unwrap();
    }
    writing.abort();
    let _ = writing.await;
    // A write of the aborted task may still be in flight.
    lockkeeper_tests::eventually("the view and the tree to agree", Timing::settle(), async || {
        let mut oracle = ensemble.raw().await.ok()?;
        (shown(&view).await == tree(&mut oracle, ROOT).await).then_some(())
    })
    .await
    .unwrap();
    drop(view);
    let (of_all, of_one) = (eager.await.unwrap(), read_all(lazy).await);
    assert!(of_all.0 > of_one.0, "the slow reader got {} differences", of_one.0);
    assert_eq!((of_one.0, of_one.1), (1, of_all.1));
}

async fn write_without_end(manager: ConnectionManager) {
    let znodes = manager.znodes();
    for number in 0_u64.. {
        let path = format!("{ROOT}/{}", number % 20);
        let _ = match number % 3 {
            0 => znodes.create(path, number.to_string(), CreateMode::Persistent).await.map(|_| ()),
            1 => znodes.write(path, number.to_string(), Version::Any).await.map(|_| ()),
            _ => znodes.delete(path).await.map(|_| ()),
        };
    }
}

#[tokio::test]
async fn views_on_the_directories_of_locks_disturb_no_lock_and_miss_no_node() {
    if left_out() {
        return;
    }
    let ensemble = Ensemble::lend().await.unwrap();
    let managers = [connect(&ensemble.connect_string()).await, connect(&ensemble.connect_string()).await];
    let tree_view = TreeView::new(&managers[0], "/locks").unwrap();
    let directories = ["/locks/mutex", "/locks/rw", "/locks/semaphore"];
    let views = directories.map(|path| TreeView::new(&managers[0], path).unwrap());
    for view in views.iter().chain([&tree_view]) {
        view.ready().await.unwrap();
    }
    let work = managers.iter().cycle().take(6).map(|manager| {
        let manager = manager.clone();
        tokio::spawn(async move {
            let mutex = Mutex::new(&manager, "/locks/mutex").unwrap();
            let lock = RwLock::new(&manager, "/locks/rw").unwrap();
            let semaphore = Semaphore::new(&manager, "/locks/semaphore", 2).unwrap();
            for _ in 0..15 {
                mutex.acquire().await.unwrap().release().await.unwrap();
                lock.read().await.unwrap().release().await.unwrap();
                lock.write().await.unwrap().release().await.unwrap();
                semaphore.acquire().await.unwrap().release().await.unwrap();
            }
        })
    });
    let done = tokio::time::timeout(Timing::settle() * 2, futures::future::try_join_all(work));
    done.await.expect("every lock is granted").unwrap();
    let mut oracle = ensemble.raw().await.unwrap();
    assert_eq!(shown(&tree_view).await, tree(&mut oracle, "/locks").await);
    for (view, path) in views.iter().zip(directories) {
        assert_eq!(shown(view).await, tree(&mut oracle, path).await);
    }
    assert!(tree_view.snapshot().revision() > 20, "{:?}", tree_view.snapshot());
}
