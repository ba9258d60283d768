use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use futures::FutureExt;
use lockkeeper::config::HandOffPolicy;
use lockkeeper::{ConnectionManager, Error, Mutex, MutexGuard, ZnodePath};
use lockkeeper_testserver::Op;
use lockkeeper_testserver::fault::{Passed, Subject};

use crate::limit::within;
use crate::server_fixture::{LOCK, ServerFixture, builder};

/// So long that only the tested events end a hold.
const SESSION: Duration = Duration::from_secs(60);

/// The number of hand-offs of a node while contenders of other processes wait.
pub(super) const AT_MOST: u32 = 3;

/// A process whose tasks share one mutex, and a rival process.
pub(super) struct HandOffFixture {
    pub(super) server_fixture: ServerFixture,
    pub(super) actor: ConnectionManager,
    pub(super) mutex: Mutex,
}

impl HandOffFixture {
    pub(super) async fn set(keep: HandOffPolicy) -> Self {
        let server_fixture = ServerFixture::start().await.unwrap();
        let actor = builder(&server_fixture.server.connect_string())
            .session_timeout(SESSION)
            .connect()
            .await
            .unwrap();
        let mutex = Mutex::new(&actor, LOCK).unwrap().with_handoff(keep).unwrap();
        Self { server_fixture, actor, mutex }
    }

    pub(super) async fn lingering() -> Self {
        Self::set(keep().idle_time(SESSION / 3)).await
    }

    pub(super) fn session(&self) -> i64 {
        self.server_fixture.sessions_of_actor()[0]
    }

    /// The rival's contender waits behind the actor's.
    pub(super) async fn rival_waits(&self) -> tokio::task::JoinHandle<MutexGuard> {
        let mutex = Mutex::new(&self.server_fixture.rival, LOCK).unwrap();
        let waiting = tokio::spawn(async move { mutex.acquire().await.unwrap() });
        self.server_fixture.queue_length_becomes(2).await.unwrap();
        waiting
    }

    /// `count` tasks of the actor wait, in this order.
    pub(super) fn waiters(&self, count: usize) -> Vec<Waiter> {
        (0..count).map(|_| Waiter::of(&self.mutex)).collect()
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
    }
}

pub(super) fn keep() -> HandOffPolicy {
    HandOffPolicy::default().max_handoffs(AT_MOST).max_time(SESSION / 3)
}

/// The requests of `session` for its locks, without those that keep the session alive and those that remove
/// watches.
pub(super) fn asked(passed: Vec<Passed>, session: i64) -> Vec<Passed> {
    let is_asked = |passed: &Passed| {
        passed.session == session
            && matches!(
                passed.subject,
                Subject::Request(op) if ![Op::Ping, Op::Multi, Op::RemoveWatches].contains(&op)
            )
    };
    passed.into_iter().filter(is_asked).collect()
}

type Acquiring = Pin<Box<dyn Future<Output = Result<MutexGuard, Error>> + Send>>;

/// An acquire in progress.
pub(super) struct Waiter(Acquiring);

impl Waiter {
    pub(super) fn of(mutex: &Mutex) -> Self {
        let mutex = mutex.clone();
        let mut acquiring: Acquiring = Box::pin(async move { mutex.acquire().await });
        assert!((&mut acquiring).now_or_never().is_none(), "the lock was free");
        Self(acquiring)
    }

    pub(super) async fn result(self) -> Result<MutexGuard, Error> {
        within("a grant", self.0).await.unwrap()
    }

    pub(super) async fn guard(self) -> MutexGuard {
        self.result().await.unwrap()
    }
}

/// Takes the guard of each waiter and releases it, one after another. Returns the node of each guard.
pub(super) async fn nodes_of(waiters: Vec<Waiter>) -> Vec<ZnodePath> {
    let mut nodes = Vec::new();
    let mut token = None;
    for waiter in waiters {
        let guard = waiter.guard().await;
        assert!(guard.is_valid() && token < Some(guard.fencing_token()), "the fencing tokens do not grow");
        token = Some(guard.fencing_token());
        nodes.push(guard.path().to_owned());
        guard.release().await.unwrap();
    }
    nodes
}
