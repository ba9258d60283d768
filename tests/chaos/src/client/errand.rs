//! One task of a client: asks for something, holds it, gives it back, again and again.

use std::sync::Arc;
use std::time::Duration;

use lockkeeper::{Error, Owner};
use lockkeeper_test_recipes::{AcquireMode, Granted, Taking};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::Common;
use super::want::Want;
use crate::Failure;
use crate::fixture::{SoakLock, Work};
use crate::history::What;

/// A task, with a random number generator and an owner of its own.
#[derive(Debug)]
pub(super) struct Errand {
    pub(super) common: Arc<Common>,
    pub(super) task: usize,
    pub(super) owner: Owner,
    pub(super) rng: StdRng,
}

impl Errand {
    pub(super) fn new(common: Arc<Common>, task: usize, seed: u64) -> Result<Self, Failure> {
        let owner = Owner::new(&format!("task {task}"));
        Ok(Self { common, task, owner, rng: StdRng::seed_from_u64(seed) })
    }

    /// Until everyone is to be quiet.
    pub(super) async fn run(mut self, work: Work) -> Result<(), Failure> {
        if matches!(work, Work::Cells) {
            return self.ask_for_values().await;
        }
        while !self.common.quiet.is_cancelled() {
            let pause = self.rng.random_range(10..100);
            self.rest(Duration::from_millis(pause)).await;
            let patience = Duration::from_millis(self.rng.random_range(1_000..15_000));
            let mode =
                if self.rng.random_bool(0.1) { AcquireMode::Try } else { AcquireMode::WaitAtMost(patience) };
            let Want { soak_locks, taking } = self.choose(work, mode)?;
            let attempt = self.common.journal.number();
            if let Some(grant) = self.ask(&soak_locks, taking, attempt).await {
                self.keep(&soak_locks, attempt, grant).await;
            }
        }
        Ok(())
    }

    /// Rests for a while, as the plan says, or until everyone is to be quiet.
    pub(super) async fn rest(&self, span: Duration) {
        let _ = self.common.quiet.run_until_cancelled(tokio::time::sleep(span)).await;
    }

    pub(super) fn say(&self, what: What) {
        self.common.journal.say(self.task, what);
    }

    /// Asks in one of the ways there are.
    async fn ask(
        &mut self,
        soak_locks: &[&'static SoakLock],
        taking: Taking,
        attempt: u64,
    ) -> Option<Granted> {
        let locks = soak_locks.iter().map(|soak_lock| soak_lock.name.to_owned()).collect();
        self.say(What::Asked { attempt, locks });
        let quiet = self.common.quiet.clone();
        let taken = if self.rng.random_bool(0.15) {
            // Dropped wherever it is by then.
            let drop_after = Duration::from_micros(self.rng.random_range(0..300_000));
            quiet.run_until_cancelled(tokio::time::timeout(drop_after, taking)).await.and_then(Result::ok)
        } else {
            quiet.run_until_cancelled(taking).await
        };
        match taken {
            Some(Ok(Some(grant))) => return Some(grant),
            Some(Err(error)) if !error.is_timeout() => self.failed(attempt, &error).await,
            // The timeout names the predecessor.
            Some(Err(timeout)) => self.say(What::GaveUp { attempt, why: timeout.to_string() }),
            _ => self.say(What::GaveUp { attempt, why: String::new() }),
        }
        None
    }

    pub(super) async fn failed(&self, attempt: u64, error: &Error) {
        let is_shut_down = error.is_closed() && self.common.quiet.is_cancelled();
        let transient = error.is_transient() || error.is_lost() || is_shut_down;
        self.say(What::Failed { attempt, error: error.to_string(), transient });
        self.rest(Duration::from_millis(100)).await;
    }
}
