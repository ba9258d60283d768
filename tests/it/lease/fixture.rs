//! Three servers whose links can be cut, a holder at one of them, and a waiter at the others.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lockkeeper::config::LeaseRenewal;
use lockkeeper::{BootInstant, ConnectionManager, Mutex, MutexGuard};
use lockkeeper_tests::{Between, Ensemble, LentEnsemble, Proxies, Timing};
use rand::RngExt;
use tokio::task::JoinHandle;

use super::expiry::expired_at;
use super::slack::{Slack, micros};
use crate::support::nodes_become;

/// The number of ticks that a server serves without hearing from its peers: longer than any session here.
const SYNC_LIMIT: u32 = 120;

pub(super) struct LeaseFixture {
    pub(super) ensemble: LentEnsemble,
    tick: Duration,
    cases: AtomicUsize,
}

/// A lock whose holder is connected to one server, and whose waiter is connected to the others.
pub(super) struct Case<'a> {
    fixture: &'a LeaseFixture,
    server: usize,
    pub(super) proxies: Proxies,
    pub(super) guard: Arc<MutexGuard>,
    session: i64,
    end: JoinHandle<End>,
    next: JoinHandle<Next>,
}

/// How the hold ended, as the holder observed it.
struct End {
    valid_until: BootInstant,
    reported: BootInstant,
}

/// How the waiter was granted the lock.
pub(super) struct Next {
    at: BootInstant,
    /// Whether the first guard was still valid by its own account.
    both_valid: bool,
    guard: MutexGuard,
}

impl LeaseFixture {
    pub(super) async fn start(tick: Duration) -> Self {
        let ensemble = Ensemble::builder()
            .servers(3)
            .tick(tick)
            .setting("syncLimit", SYNC_LIMIT.to_string())
            .property("user.timezone", "UTC")
            .apart(true);
        Self { ensemble: ensemble.lend().await.unwrap(), tick, cases: AtomicUsize::new(0) }
    }

    pub(super) async fn leader(&self) -> usize {
        self.ensemble.leader().await.unwrap().index()
    }

    pub(super) async fn follower(&self) -> usize {
        self.ensemble.followers().await.unwrap()[0].index()
    }

    pub(super) fn between(&self) -> &Between {
        self.ensemble.between().unwrap()
    }

    /// Mends everything, and waits until all servers agree again.
    pub(super) async fn heal(&self) {
        self.between().mend_all();
        for server in self.ensemble.servers() {
            server.start().await.unwrap();
        }
        self.ensemble.settled().await.unwrap();
    }

    /// A holder at `server`, at some moment between two of its confirmations.
    pub(super) async fn case(&self, server: usize, session: Duration, confirm: LeaseRenewal) -> Case<'_> {
        let proxies = Proxies::start(&self.ensemble).await.unwrap();
        let connect = |servers: String| {
            ConnectionManager::builder(&servers)
                .session_timeout(session)
                .tick_time(self.tick)
                .lease_renewal(confirm)
                .connect_deadline(Timing::settle())
                .connect()
        };
        let path = format!("/lease/{}", self.cases.fetch_add(1, Ordering::Relaxed));
        let manager = connect(proxies.proxy(server).address().to_string()).await.unwrap();
        let guard = Arc::new(Mutex::new(&manager, &path).unwrap().acquire().await.unwrap());
        let id = proxies.sessions().last().unwrap().id;

        let others = self.ensemble.servers().iter().filter(|other| other.index() != server);
        let others: Vec<String> = others.map(|other| other.address().to_string()).collect();
        let next = Mutex::new(&connect(others.join(",")).await.unwrap(), &path).unwrap();
        let end = tokio::spawn(see_the_end(Arc::clone(&guard)));
        let next = tokio::spawn(see_the_next(next, Arc::clone(&guard)));
        nodes_become(&self.ensemble, &path, 2).await;
        confirmed(&guard, rand::rng().random_range(0..4)).await;
        // The passing of time is the subject: the fault strikes at a random moment between two confirmations.
        tokio::time::sleep(session.mul_f64(rand::rng().random_range(0.0..0.16))).await;
        Case { fixture: self, server, proxies, guard, session: id, end, next }
    }
}

/// Waits until the lease was extended `times` times.
pub(super) async fn confirmed(guard: &MutexGuard, times: usize) {
    for _ in 0..times {
        let before = guard.valid_until();
        while guard.is_valid() && guard.valid_until() == before {
            // A guard announces its loss, and no extension of its lease: the test has to poll.
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Case<'_> {
    /// Waits until the waiter is granted the lock.
    pub(super) async fn granted(&mut self) -> Next {
        (&mut self.next).await.unwrap()
    }

    /// Heals everything, and returns how much earlier than the grant the guard had become invalid.
    pub(super) async fn slack(self, next: Next) -> Slack {
        self.fixture.heal().await;
        let end = tokio::time::timeout(Timing::settle(), self.end).await.unwrap().unwrap();
        let expired = expired_at(&self.fixture.ensemble, self.session, self.server);
        let expired = expired.expect("a leader that says when it expired the session");
        next.guard.release().await.unwrap();
        Slack {
            clock: micros(end.valid_until, expired),
            reported: micros(end.reported, next.at),
            both_valid: next.both_valid,
        }
    }
}

async fn see_the_end(guard: Arc<MutexGuard>) -> End {
    let mut valid_until = guard.valid_until();
    let mut lost = std::pin::pin!(guard.lost());
    loop {
        tokio::select! {
            biased;
            _ = &mut lost => return End { valid_until, reported: BootInstant::now() },
            // A guard announces its loss, and no extension of its lease: the test has to poll.
            () = tokio::time::sleep(Duration::from_millis(5)) => {}
        }
        let seen = guard.valid_until();
        // `valid_until` of a lost guard lies in the past.
        if guard.is_valid() {
            valid_until = seen;
        }
    }
}

async fn see_the_next(mutex: Mutex, before: Arc<MutexGuard>) -> Next {
    let guard = mutex.acquire().await.unwrap();
    let at = BootInstant::now();
    Next { at, both_valid: before.is_valid(), guard }
}
