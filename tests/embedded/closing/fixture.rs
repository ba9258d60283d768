use std::future::Future;
use std::time::Duration;

use futures::future::BoxFuture;
use lockkeeper::config::HandOffPolicy;
use lockkeeper::locks::ZooKeeperLock;
use lockkeeper::{ConnectionManager, Error, MultiLock, Mutex, MutexGuard, RwLock, Semaphore};
use lockkeeper_testserver::machine::Machine;
use tokio::task::JoinHandle;

use crate::limit::within;
use crate::server_fixture::{LOCK, ServerFixture, builder};

/// Longer than any test.
const LONG: Duration = Duration::from_secs(600);

/// One manager that is about to be shut down, and another one.
pub(super) struct ClosingFixture {
    pub(super) server_fixture: ServerFixture,
    pub(super) actor: ConnectionManager,
    /// A hold of the same manager, so that the shutdown waits.
    busy: MutexGuard,
}

/// A shutdown that waits for the holders.
pub(super) struct Closing {
    fixture: ClosingFixture,
    ending: JoinHandle<Result<u32, Error>>,
}

impl ClosingFixture {
    pub(super) async fn set() -> Self {
        let server_fixture = ServerFixture::start().await.unwrap();
        let actor = builder(&server_fixture.server.connect_string()).session_timeout(Duration::from_secs(60));
        let actor = actor.connect().await.unwrap();
        let busy = Mutex::new(&actor, "/busy").unwrap().acquire().await.unwrap();
        Self { server_fixture, actor, busy }
    }

    pub(super) fn session(&self) -> i64 {
        self.server_fixture.sessions_of_actor()[0]
    }

    /// Begins the shutdown. Only its own task and the manager's tasks have run since.
    pub(super) async fn begin(self) -> Closing {
        let actor = self.actor.clone();
        let ending = tokio::spawn(async move { actor.shutdown_within(LONG).await });
        within("the beginning", self.actor.closing()).await.unwrap();
        Closing { fixture: self, ending }
    }

    pub(super) async fn queue_is_empty(&self) {
        let empty = self.server_fixture.server.wait_until(|machine| contenders(machine) == 0);
        within("an empty queue", empty).await.unwrap();
    }

    /// Polls `waiting` until there are `nodes` nodes of contenders.
    pub(super) async fn waits_with<T>(&self, waiting: &mut (impl Future<Output = T> + Unpin), nodes: usize) {
        let queued = async {
            let count = self.server_fixture.server.wait_until(|machine| contenders(machine) == nodes);
            within(&format!("{nodes} contenders"), count).await.unwrap();
            for _ in 0..3 {
                self.server_fixture.round_trip_of_rival().await.unwrap();
            }
        };
        tokio::select! {
            biased;
            _ = waiting => panic!("granted while the lock is held"),
            () = queued => {}
        }
    }
}

impl Closing {
    /// Every lock but one is released: the shutdown ends in order.
    pub(super) async fn ends(self, what: &str) {
        let ClosingFixture { server_fixture, busy, .. } = self.fixture;
        assert!(!self.ending.is_finished() && busy.is_valid(), "{what}");
        let released = server_fixture.server.wait_until(|machine| contenders(machine) == 0);
        within(&format!("no contender: {what}"), released).await.unwrap();
        busy.release().await.unwrap();
        assert_eq!(within("the end", self.ending).await.unwrap().unwrap().unwrap(), 0, "{what}");
    }

    pub(super) fn fixture(&self) -> &ClosingFixture {
        &self.fixture
    }
}

/// The number of contender nodes below the locks of these tests.
fn contenders(machine: &Machine) -> usize {
    let sessions = machine.sessions();
    let ephemerals = sessions.iter().flat_map(|session| machine.tree().ephemerals(*session));
    ephemerals.filter(|path| path.starts_with("/locks/")).count()
}

pub(super) fn is_closed<T>(result: &Result<T, Error>) -> bool {
    matches!(result, Err(error) if error.is_closed())
}

/// Acquires the lock, and releases it at once.
pub(super) fn acquire(lock: &dyn ZooKeeperLock) -> BoxFuture<'_, Result<(), Error>> {
    Box::pin(async move { lock.acquire().await.map(drop) })
}

/// The locks that exclude themselves, by name.
pub(super) fn exclusive(manager: &ConnectionManager) -> Vec<(&'static str, Box<dyn ZooKeeperLock>)> {
    let mutex = |path| Mutex::new(manager, path).unwrap();
    let keep = HandOffPolicy::default().idle_time(Duration::from_secs(5));
    // A path is a member either of ordered locks only, or of atomic locks only.
    let both = |one, other| MultiLock::builder().lock(&mutex(one)).lock(&mutex(other));
    vec![
        ("mutex", Box::new(mutex(LOCK))),
        ("mutex that keeps its node", Box::new(mutex(LOCK).with_handoff(HandOffPolicy::default()).unwrap())),
        ("mutex that lingers", Box::new(mutex(LOCK).with_handoff(keep).unwrap())),
        ("mutex in the layout of a semaphore", Box::new(Mutex::in_semaphore_layout(manager, LOCK).unwrap())),
        ("writer", Box::new(RwLock::new(manager, LOCK).unwrap().writer())),
        ("semaphore", Box::new(Semaphore::new(manager, LOCK, 1).unwrap().permits(1))),
        ("several in order", Box::new(both(LOCK, "/locks/other").build().unwrap())),
        ("several at once", Box::new(both("/locks/one", "/locks/two").atomic().build().unwrap())),
    ]
}
