//! What a client does beside its locks: it counts, it follows the registers, and it meets other clients.

use std::sync::Arc;
use std::time::Duration;

use lockkeeper::error::Outcome;
use lockkeeper::view::{Difference, Snapshot};
use lockkeeper::{Counter, DoubleBarrier, Error, RateLimiter, TreeView};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::Common;
use crate::Failure;
use crate::clock;
use crate::fixture::{self, BARRIER, GRACE, LIMITER, MEMBERS, NUMBER, REGISTERS, STARTING, STARTS, WINDOW};
use crate::history::What;

/// A task with a random number generator of its own.
pub(super) struct Beside {
    pub(super) common: Arc<Common>,
    pub(super) task: usize,
    pub(super) rng: StdRng,
}

impl Beside {
    pub(super) fn new(common: &Arc<Common>, task: usize, seed: u64) -> Self {
        Self { common: Arc::clone(common), task, rng: StdRng::seed_from_u64(seed) }
    }

    pub(super) fn say(&self, what: What) {
        self.common.journal.say(self.task, what);
    }

    /// The time between two calls: a part of the load, and no wait for a state.
    pub(super) async fn rest(&mut self, milliseconds: std::ops::Range<u64>) {
        let span = Duration::from_millis(self.rng.random_range(milliseconds));
        let _ = self.common.quiet.run_until_cancelled(tokio::time::sleep(span)).await;
    }

    /// An error that waiting does not cure.
    pub(super) fn failed(&self, attempt: u64, error: &Error) {
        let is_expected =
            error.is_transient() || error.is_timeout() || error.is_lost() || error.outcome_unknown();
        if !is_expected {
            self.say(What::Failed { attempt, error: error.to_string(), transient: false });
        }
    }

    /// Adds ones to the counter of all clients, until everyone is to be quiet.
    pub(super) async fn count(mut self) -> Result<(), Failure> {
        let counter = Counter::new(self.common.pool.for_path(NUMBER), NUMBER)?;
        while !self.common.quiet.is_cancelled() {
            self.rest(10..100).await;
            let attempt = self.common.journal.number();
            self.say(What::Adding { attempt });
            let quiet = self.common.quiet.clone();
            match quiet.run_until_cancelled(counter.increment()).await {
                None => {}
                Some(Ok(sum)) => self.say(What::Added { attempt, sum }),
                Some(Err(error)) => {
                    if error.outcome() == Outcome::NotApplied {
                        self.say(What::NotAdded { attempt });
                    }
                    self.failed(attempt, &error);
                }
            }
        }
        Ok(())
    }

    /// Starts as often as the rate limiter of all clients admits, until everyone is to be quiet.
    pub(super) async fn start(mut self) -> Result<(), Failure> {
        let limiter = RateLimiter::new(self.common.pool.for_path(LIMITER), LIMITER, STARTS, WINDOW)?;
        let limiter = limiter.with_grace(GRACE);
        let ahead = limiter.clone().with_ahead(STARTS / 8);
        while !self.common.quiet.is_cancelled() {
            self.rest(1..30).await;
            let attempt = self.common.journal.number();
            let (starts, patience) = (self.rng.random_range(1..=3), self.rng.random_range(0..5_000));
            let limiter = if self.rng.random_bool(0.5) { &ahead } else { &limiter };
            let admit = async {
                match starts {
                    1 => limiter.admit_timeout(Duration::from_millis(patience)).await,
                    more => limiter.admit_many(more).await,
                }
            };
            let limit = Duration::from_millis(self.rng.random_range(1..10_000));
            let admitted = tokio::time::timeout(limit, admit);
            match self.common.quiet.clone().run_until_cancelled(admitted).await {
                Some(Ok(Ok(admission))) => {
                    // First the clock: what is fresh after that was fresh then, and so the start is then.
                    let at = clock::now();
                    if admission.is_fresh() {
                        let (lock, starts) = (STARTING.to_owned(), admission.starts());
                        self.common.journal.say_at(at, self.task, What::Started { attempt, lock, starts });
                    }
                }
                Some(Ok(Err(error))) => self.failed(attempt, &error),
                Some(Err(_)) | None => {}
            }
        }
        Ok(())
    }

    /// Follows the registers, until everyone is to be quiet.
    pub(super) async fn follow(mut self) -> Result<(), Failure> {
        let view = TreeView::new(self.common.pool.for_path(REGISTERS), REGISTERS)?;
        let mut changes = view.changes();
        while !self.common.quiet.is_cancelled() {
            let span = Duration::from_millis(self.rng.random_range(20..300));
            let reading = async {
                while let Some(difference) = changes.next().await {
                    self.show(&difference);
                }
            };
            let quiet = self.common.quiet.clone();
            let _ = quiet.run_until_cancelled(tokio::time::timeout(span, reading)).await;
            self.sync(&view).await;
        }
        Ok(())
    }

    fn show(&self, difference: &Difference) {
        for change in difference.changes() {
            if let Some(node) = change.node().filter(|_| !change.path().is_empty()) {
                self.say(What::Shown { register: change.path().to_owned(), version: node.stat().version });
            }
        }
    }

    async fn sync(&self, view: &TreeView) {
        let (attempt, asked) = (self.common.journal.number(), clock::now());
        match view.sync().await {
            Ok(snapshot) => self.say(What::Synced { asked, registers: versions(&snapshot) }),
            Err(error) => self.failed(attempt, &error),
        }
    }

    /// Enters and leaves the double barrier, until everyone is to be quiet.
    pub(super) async fn meet(mut self) -> Result<(), Failure> {
        let barrier = DoubleBarrier::new(self.common.pool.for_path(BARRIER), BARRIER, MEMBERS)?;
        let quiet = self.common.quiet.clone();
        while !quiet.is_cancelled() {
            self.rest(10..100).await;
            let patience = Duration::from_millis(self.rng.random_range(1_000..8_000));
            let attempt = self.common.journal.number();
            self.say(What::Entering { attempt });
            let inside = match quiet.run_until_cancelled(barrier.enter_timeout(patience)).await {
                None => return Ok(()),
                Some(Ok(inside)) => inside,
                Some(Err(error)) => {
                    self.failed(attempt, &error);
                    continue;
                }
            };
            self.say(What::Entered { attempt });
            self.rest(5..50).await;
            match quiet.run_until_cancelled(inside.leave_timeout(Duration::from_secs(20))).await {
                None => return Ok(()),
                Some(Ok(())) => self.say(What::Left { attempt }),
                Some(Err(error)) => self.failed(attempt, &error),
            }
        }
        Ok(())
    }
}

fn versions(snapshot: &Arc<Snapshot>) -> std::collections::BTreeMap<String, i32> {
    snapshot.children("").map(|(name, node)| (name.to_owned(), node.stat().version)).collect()
}

/// The number of tasks of all clients, besides those of their locks.
pub(super) fn first_task() -> usize {
    fixture::work().count()
}
