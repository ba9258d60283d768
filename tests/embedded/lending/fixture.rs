use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use futures::FutureExt;
use lockkeeper::config::HandOffPolicy;
use lockkeeper::{ConnectionManager, Error, Lease, Semaphore};
use lockkeeper_testserver::fault::{Passed, Subject};
use lockkeeper_testserver::{Op, machine::Machine};

use crate::limit::within;
use crate::server_fixture::{LOCK, ServerFixture, builder, children};

/// So long that only the tested events end a hold.
pub(super) const SESSION: Duration = Duration::from_secs(120);

/// The number of hand-offs of a node while contenders of other processes wait.
pub(super) const AT_MOST: u32 = 3;

/// A process whose tasks share the nodes of a semaphore, and a rival process.
pub(super) struct LendingFixture {
    pub(super) server_fixture: ServerFixture,
    pub(super) actor: ConnectionManager,
    pub(super) semaphore: Semaphore,
}

impl LendingFixture {
    pub(super) async fn set(permits: u32, hand_off: HandOffPolicy) -> Self {
        let server_fixture = ServerFixture::start().await.unwrap();
        let actor = builder(&server_fixture.server.connect_string())
            .session_timeout(SESSION)
            .connect()
            .await
            .unwrap();
        let semaphore = Semaphore::new(&actor, LOCK, permits).unwrap().with_handoff(hand_off).unwrap();
        Self { server_fixture, actor, semaphore }
    }

    pub(super) async fn lingering(permits: u32) -> Self {
        Self::set(permits, bounds().idle_time(SESSION / 3)).await
    }

    pub(super) fn session(&self) -> i64 {
        self.server_fixture.sessions_of_actor()[0]
    }

    /// The same semaphore in the rival process, which keeps no nodes.
    pub(super) fn theirs(&self, permits: u32) -> Semaphore {
        Semaphore::new(&self.server_fixture.rival, LOCK, permits).unwrap()
    }

    pub(super) async fn leases_become(&self, count: usize) {
        let leases = self.server_fixture.server.wait_until(|machine| leases(machine).len() == count);
        within(&format!("{count} leases"), leases).await.unwrap();
    }

    pub(super) async fn contenders_become(&self, count: usize) {
        let queue = format!("{LOCK}/locks");
        let queue = self.server_fixture.server.wait_until(|machine| children(machine, &queue).len() == count);
        within(&format!("{count} contenders"), queue).await.unwrap();
    }

    /// `count` tasks of the actor wait, in this order, and one contender for all of them.
    pub(super) async fn waiters(&self, count: usize) -> Vec<Waiter> {
        let waiters = (0..count).map(|_| Waiter::of(&self.semaphore)).collect();
        let queue = format!("{LOCK}/locks");
        let entered = self.server_fixture.server.wait_until(|machine| !children(machine, &queue).is_empty());
        within("a contender for the waiting tasks", entered).await.unwrap();
        waiters
    }

    /// Lets every task run until it has to wait: all tasks share a thread.
    pub(super) async fn let_all_run(&self) {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }

    /// Waits until the client watches for contenders of other processes.
    pub(super) async fn wait_watched(&self) {
        let watches = self.server_fixture.server.wait_until(|machine| machine.watch_count(0) >= 2);
        within("the watches", watches).await.unwrap();
        self.wait_heard().await;
    }

    /// Waits until the client has judged whether other contenders wait.
    pub(super) async fn wait_judged(&self) {
        let watch = self.server_fixture.server.wait_until(|machine| machine.watch_count(0) >= 1);
        within("the watch on the queue", watch).await.unwrap();
        self.wait_heard().await;
    }

    /// Waits until the client has heard what the server has told it, and has the answers to what it asks
    /// then: answers and events come in order, and each request of that is sent before one of these.
    pub(super) async fn wait_heard(&self) {
        for _ in 0..6 {
            self.actor.znodes().read("/").await.unwrap();
            self.let_all_run().await;
        }
    }
}

pub(super) fn bounds() -> HandOffPolicy {
    HandOffPolicy::default().max_handoffs(AT_MOST).max_time(SESSION / 3)
}

pub(super) fn leases(machine: &Machine) -> Vec<String> {
    children(machine, &format!("{LOCK}/leases"))
}

/// The requests of `session` for the semaphore.
pub(super) fn asked(passed: Vec<Passed>, session: i64) -> Vec<Passed> {
    let is_asked = |passed: &Passed| {
        passed.session == session
            && matches!(passed.subject, Subject::Request(op) if ![Op::Ping, Op::RemoveWatches].contains(&op))
    };
    passed.into_iter().filter(is_asked).collect()
}

type Acquiring = Pin<Box<dyn Future<Output = Result<Lease, Error>> + Send>>;

/// An acquire in progress.
pub(super) struct Waiter(Acquiring);

impl Waiter {
    pub(super) fn of(semaphore: &Semaphore) -> Self {
        let semaphore = semaphore.clone();
        let mut acquiring: Acquiring = Box::pin(async move { semaphore.acquire().await });
        assert!((&mut acquiring).now_or_never().is_none(), "a permit was kept");
        Self(acquiring)
    }

    pub(super) async fn result(self) -> Result<Lease, Error> {
        within("a grant", self.0).await.unwrap()
    }

    pub(super) async fn lease(self) -> Lease {
        self.result().await.unwrap()
    }
}
