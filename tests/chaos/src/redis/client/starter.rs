use std::time::Duration;

use lockkeeper_redis::{Error, RateLimiter};
use rand::RngExt;

use super::super::{LIMITER, STARTS};
use super::Common;
use crate::history::What;
use crate::{Failure, clock};

/// A task that starts as often as a rate limiter admits.
pub(super) struct Starter {
    common: Common,
    limiter: RateLimiter,
}

impl Starter {
    pub(super) fn new(common: Common, limiter: RateLimiter) -> Self {
        Self { common, limiter }
    }

    pub(super) async fn run(mut self) -> Result<(), Failure> {
        while !self.common.quiet.is_cancelled() {
            self.common.rest(40).await;
            let attempt = self.common.journal.number();
            self.common.say(What::Asked { attempt, locks: vec![LIMITER.to_owned()] });
            let asked = self.common.rng.random_range(1..=STARTS);
            let (patience, drop_after) = (self.common.patience(), self.common.drop_after());
            let admit = async {
                match asked {
                    // A try now and then: it waits for no room.
                    1 if patience < Duration::from_secs(1) => Ok(self.limiter.try_admit().await?.admitted()),
                    1 => self.limiter.admit_timeout(patience).await.map(Some),
                    more => self.limiter.admit_many(more).await.map(Some),
                }
            };
            let admitted = tokio::time::timeout(drop_after, admit);
            match self.common.quiet.clone().run_until_cancelled(admitted).await {
                Some(Ok(Ok(Some(admission)))) => {
                    // First the clock: what is fresh after that was fresh then, and so the start is then.
                    let at = clock::now();
                    if admission.is_fresh() {
                        let (lock, starts) = (LIMITER.to_owned(), admission.starts());
                        let what = What::Started { attempt, lock, starts };
                        self.common.journal.say_at(at, self.common.number, what);
                    }
                }
                Some(Ok(Err(error))) => self.failed(attempt, &error),
                _ => self.common.say(What::GaveUp { attempt, why: String::new() }),
            }
        }
        Ok(())
    }

    fn failed(&self, attempt: u64, error: &Error) {
        let (text, transient) = (error.to_string(), error.is_transient());
        self.common.say(match error.is_timeout() {
            true => What::GaveUp { attempt, why: text },
            false => What::Failed { attempt, error: text, transient },
        });
    }
}
