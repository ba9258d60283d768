use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use futures::FutureExt;
use lockkeeper::config::HandOffPolicy;
use lockkeeper::{ConnectionManager, Error, ReadGuard, RwLock, WriteGuard};
use lockkeeper_testserver::Op;
use lockkeeper_testserver::fault::{Passed, Subject};
use tokio::task::JoinHandle;

use crate::limit::within;
use crate::server_fixture::{LOCK, ServerFixture, builder, queue_nodes};

/// So long that only the tested events end a hold.
pub(super) const SESSION: Duration = Duration::from_secs(60);

/// A process whose readers share a node, and a rival process.
pub(super) struct ReadingFixture {
    pub(super) server_fixture: ServerFixture,
    pub(super) actor: ConnectionManager,
    pub(super) lock: RwLock,
}

impl ReadingFixture {
    pub(super) async fn set(hand_off: HandOffPolicy) -> Self {
        let server_fixture = ServerFixture::start().await.unwrap();
        let actor = builder(&server_fixture.server.connect_string())
            .session_timeout(SESSION)
            .connect()
            .await
            .unwrap();
        let lock = RwLock::new(&actor, LOCK).unwrap().with_handoff(hand_off).unwrap();
        Self { server_fixture, actor, lock }
    }

    pub(super) async fn lingering() -> Self {
        Self::set(bounds().idle_time(SESSION / 3)).await
    }

    pub(super) fn session(&self) -> i64 {
        self.server_fixture.sessions_of_actor()[0]
    }

    pub(super) fn theirs(&self) -> RwLock {
        RwLock::new(&self.server_fixture.rival, LOCK).unwrap()
    }

    pub(super) async fn nodes_become(&self, count: usize) {
        self.server_fixture.queue_length_becomes(count).await.unwrap();
    }

    /// A writer of the rival waits, and the actor has seen it.
    pub(super) async fn rival_waits_to_write(&self) -> JoinHandle<WriteGuard> {
        let before = self.server_fixture.server.inspect(|machine| queue_nodes(machine).len());
        let theirs = self.theirs();
        let waiting = tokio::spawn(async move { theirs.write().await.unwrap() });
        self.nodes_become(before + 1).await;
        self.wait_heard().await;
        waiting
    }

    /// Waits until the actor has heard what the server has told it, and has the answer to what it asks then:
    /// answers and events come in order.
    async fn wait_heard(&self) {
        for _ in 0..3 {
            self.actor.znodes().read("/").await.unwrap();
            self.let_all_run().await;
        }
    }

    /// Lets every task run until it has to wait: all tasks share a thread.
    pub(super) async fn let_all_run(&self) {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }

    /// Waits until the client watches for writers.
    pub(super) async fn wait_watched(&self) {
        let watches = self.server_fixture.server.wait_until(|machine| machine.watch_count(0) >= 2);
        within("the watches", watches).await.unwrap();
        self.wait_heard().await;
    }
}

pub(super) fn bounds() -> HandOffPolicy {
    HandOffPolicy::default().max_handoffs(3).max_time(SESSION / 3)
}

/// The requests of `session` for the lock.
pub(super) fn asked(passed: Vec<Passed>, session: i64) -> Vec<Passed> {
    let is_asked = |passed: &Passed| {
        passed.session == session
            && matches!(passed.subject, Subject::Request(op) if ![Op::Ping, Op::RemoveWatches].contains(&op))
    };
    passed.into_iter().filter(is_asked).collect()
}

type Acquiring = Pin<Box<dyn Future<Output = Result<ReadGuard, Error>> + Send>>;

/// A read in progress.
pub(super) struct Reader(Acquiring);

impl Reader {
    pub(super) fn of(lock: &RwLock) -> Self {
        let lock = lock.clone();
        let mut acquiring: Acquiring = Box::pin(async move { lock.read().await });
        assert!((&mut acquiring).now_or_never().is_none(), "a node was shared");
        Self(acquiring)
    }

    pub(super) async fn result(self) -> Result<ReadGuard, Error> {
        within("a grant", self.0).await.unwrap()
    }

    pub(super) async fn guard(self) -> ReadGuard {
        self.result().await.unwrap()
    }
}
