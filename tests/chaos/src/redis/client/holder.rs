use std::sync::Arc;
use std::time::Duration;

use lockkeeper_redis::{Error, Lock, LockError, LockGuard};
use rand::RngExt;

use super::Common;
use crate::fenced::FencedClient;
use crate::history::{Mode, Token, What};
use crate::{Failure, clock};

/// A task that takes a lock, again and again.
pub(super) struct Holder {
    common: Common,
    name: &'static str,
    lock: Box<dyn Lock>,
    mode: Mode,
    fenced: Arc<FencedClient>,
}

impl Holder {
    pub(super) fn new(
        common: Common,
        name: &'static str,
        lock: Box<dyn Lock>,
        mode: Mode,
        fenced: Arc<FencedClient>,
    ) -> Self {
        Self { common, name, lock, mode, fenced }
    }

    pub(super) async fn run(mut self) -> Result<(), Failure> {
        while !self.common.quiet.is_cancelled() {
            self.common.rest(40).await;
            let attempt = self.common.journal.number();
            self.common.say(What::Asked { attempt, locks: vec![self.name.to_owned()] });
            let taking = self.lock.acquire_timeout(self.common.patience());
            let taken = tokio::time::timeout(self.common.drop_after(), taking);
            match self.common.quiet.clone().run_until_cancelled(taken).await {
                Some(Ok(Ok(guard))) => self.keep(attempt, guard).await?,
                Some(Ok(Err(error))) => self.failed(attempt, &error),
                _ => self.common.say(What::GaveUp { attempt, why: String::new() }),
            }
        }
        Ok(())
    }

    fn failed(&self, attempt: u64, error: &LockError) {
        let transient = error.engine::<Error>().is_some_and(Error::is_transient);
        let text = error.to_string();
        self.common.say(match error.is_timeout() {
            true => What::GaveUp { attempt, why: text },
            false => What::Failed { attempt, error: text, transient },
        });
    }

    /// Holds the lock for a while, looks at the guard, and uses its token.
    async fn keep(&mut self, attempt: u64, guard: LockGuard) -> Result<(), Failure> {
        let (hold, token) = (self.common.journal.number(), Token::from(guard.fencing_token()));
        let (lock, mode) = (self.name.to_owned(), self.mode);
        self.common.say(What::Granted { attempt, hold, lock, mode, token, nodes: Vec::new() });
        for _ in 0..self.common.rng.random_range(1..6) {
            if !self.is_still_valid(hold, &guard).await {
                break;
            }
            // The tokens of permits have no order.
            if mode == Mode::Alone {
                let accepted = self.fenced.stamp(self.name, token, false).await?;
                let (at, valid) = (clock::now(), guard.is_valid());
                let stamped = What::Stamped { hold, accepted, valid };
                self.common.journal.say_at(at, self.common.number, stamped);
            }
            self.again(hold).await;
            self.common.rest(20).await;
        }
        self.common.say(What::Ended { hold });
        if self.common.rng.random_bool(0.3) {
            drop(guard);
        } else {
            let released = guard.release().await;
            let outcome = released.map_or_else(|error| error.to_string(), |()| "released".to_owned());
            self.common.say(What::Released { hold, outcome });
        }
        Ok(())
    }

    /// Writes down whether the guard is valid, and whether `lost()` agrees.
    async fn is_still_valid(&self, hold: u64, guard: &LockGuard) -> bool {
        // First the clock: a guard that is valid after that was valid then.
        let at = clock::now();
        let left = u64::try_from(guard.valid_until().remaining().as_nanos()).unwrap_or(u64::MAX);
        let say = |what| self.common.journal.say_at(at, self.common.number, what);
        let Err(lost) = guard.check() else {
            say(What::Valid { hold, until: at.saturating_add(left) });
            return true;
        };
        say(What::Invalid { hold, why: lost.to_string() });
        if tokio::time::timeout(Duration::from_secs(5), guard.lost()).await.is_err() {
            let text = "is_valid() says false, lost() says nothing".to_owned();
            self.common.say(What::Contradiction { hold, text });
        }
        false
    }

    /// Where an owner may, it takes the lock once more while it holds it.
    async fn again(&mut self, hold: u64) {
        if self.name != "reentrant" || !self.common.rng.random_bool(0.5) {
            return;
        }
        match self.lock.try_acquire().await {
            Ok(Some(inner)) => {
                self.common.say(What::Again { hold, token: inner.fencing_token().into() });
                if self.common.rng.random_bool(0.5) {
                    let _ = inner.release().await;
                }
            }
            Ok(None) => {
                let text = "its owner holds it, and is refused".to_owned();
                self.common.say(What::Contradiction { hold, text });
            }
            // The hold was lost meanwhile.
            Err(_) => {}
        }
    }
}
