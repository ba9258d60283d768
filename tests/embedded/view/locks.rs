//! Views on the very directories of contended locks, of the same manager.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::join_all;
use lockkeeper::{ConnectionManager, Mutex, NodeView, RwLock, Semaphore, TreeView};
use tokio::sync::watch;

use super::witness::{Witness, copy_of, tree_of};
use super::{client, newest_session, put, soon};
use crate::limit::within;
use crate::server_fixture::ServerFixture;

/// The directories of the locks.
const DIRECTORIES: [&str; 3] = ["/locks/mutex", "/locks/rw", "/locks/semaphore"];

/// How many faults there are.
const FAULTS: usize = 8;

/// Counts those inside, and fails if they are more than allowed.
#[derive(Default)]
struct Inside(AtomicUsize);

/// Whether the contenders go on.
type Work = watch::Receiver<bool>;

impl Inside {
    async fn at_most(&self, limit: usize) {
        let before = self.0.fetch_add(1, Ordering::SeqCst);
        assert!(before < limit, "{before} were inside already");
        tokio::task::yield_now().await;
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn mutex(manager: ConnectionManager, inside: Arc<Inside>, work: Work) {
    let mutex = Mutex::new(&manager, "/locks/mutex").unwrap();
    while *work.borrow() {
        let guard = mutex.acquire().await.unwrap();
        let _ = guard.run(inside.at_most(1)).await;
        let _ = guard.release().await;
    }
}

async fn read_and_write(manager: ConnectionManager, inside: Arc<Inside>, work: Work) {
    let lock = RwLock::new(&manager, "/locks/rw").unwrap();
    while *work.borrow() {
        let guard = lock.read().await.unwrap();
        let _ = guard.run(tokio::task::yield_now()).await;
        let _ = guard.release().await;
        let guard = lock.write().await.unwrap();
        let _ = guard.run(inside.at_most(1)).await;
        let _ = guard.release().await;
    }
}

async fn permits(manager: ConnectionManager, inside: Arc<Inside>, work: Work) {
    let semaphore = Semaphore::new(&manager, "/locks/semaphore", 2).unwrap();
    while *work.borrow() {
        let lease = semaphore.acquire().await.unwrap();
        let _ = lease.run(inside.at_most(2)).await;
        let _ = lease.release().await;
    }
}

#[tokio::test]
async fn views_and_locks_of_one_manager_on_one_path_do_not_disturb_each_other() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let managers = [client(&server_fixture).await, client(&server_fixture).await];
    put(&server_fixture.rival, "/locks/mutex", "").await;
    let tree = TreeView::new(&managers[0], "/locks").unwrap();
    let directories = DIRECTORIES.map(|path| TreeView::new(&managers[0], path).unwrap());
    let node = NodeView::new(&managers[0], "/locks/mutex").unwrap();
    for view in directories.iter().chain([&tree]) {
        soon("the views", view.ready()).await;
    }
    soon("the view", node.ready()).await;
    let mut witness = Witness::new(tree.changes());
    let views = newest_session(&server_fixture);

    let inside: [Arc<Inside>; 3] = Default::default();
    let (going_on, work) = watch::channel(true);
    let contenders = managers.iter().cycle().take(6).flat_map(|manager| {
        let [exclusive, writers, holders] = inside.clone();
        [
            tokio::spawn(mutex(manager.clone(), exclusive, work.clone())),
            tokio::spawn(read_and_write(manager.clone(), writers, work.clone())),
            tokio::spawn(permits(manager.clone(), holders, work.clone())),
        ]
    });
    let work = join_all(contenders);
    let faults = async {
        for round in 0..FAULTS {
            let shown = directories.each_ref().map(|view| view.snapshot().revision());
            let done = server_fixture.server.inspect(|machine| machine.zxid()) + 60;
            server_fixture.server.wait_until(|machine| machine.zxid() >= done).await;
            for (view, shown) in directories.iter().zip(shown) {
                newer_than(view, shown).await;
            }
            match round % 4 {
                0 => drop(server_fixture.server.expire(views)),
                _ => server_fixture.server.drop_connections(),
            }
        }
        going_on.send_replace(false);
    };
    let reading = async {
        loop {
            witness.changed().await;
        }
    };
    let (done, ()) = tokio::select! {
        done = within("the work of all contenders", async { tokio::join!(work, faults) }) => done.unwrap(),
        never = reading => never,
    };
    for contender in done {
        contender.unwrap();
    }
    soon("a sync", async { tokio::try_join!(tree.sync(), node.sync()) }).await;
    witness.read();
    server_fixture.server.inspect(|machine| assert_eq!(witness.copy(), &tree_of(machine, "/locks", 9)));
    for (view, path) in directories.iter().zip(DIRECTORIES) {
        let shown = copy_of(&soon("a sync", view.sync()).await);
        server_fixture.server.inspect(|machine| assert_eq!(shown, tree_of(machine, path, 9), "{path}"));
    }
}

async fn newer_than(view: &TreeView, revision: u64) {
    let mut changes = view.changes();
    while changes.snapshot().revision() <= revision {
        changes.next().await.expect("the view has not ended");
    }
}
