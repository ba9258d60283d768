//! Items of a work queue: a client puts them, and takes them and ends them with an effect that is counted.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use lockkeeper::error::Outcome;
use lockkeeper::work_queue::WorkItem;
use lockkeeper::{Error, Table, WorkQueue};
use rand::RngExt;

use super::beside::Beside;
use super::look::LOOK;
use crate::fixture::{self, ENTRIES, JOBS, TABLE};
use crate::history::{Mode, Token, What};
use crate::{Failure, clock};

/// A call that is not to be dropped ends by itself long before.
const LONG: Duration = Duration::from_secs(60);

impl Beside {
    /// Puts items, until everyone is to be quiet.
    pub(super) async fn put_jobs(mut self) -> Result<(), Failure> {
        let queue = fixture::jobs(self.common.pool.for_path(JOBS))?;
        while !self.common.quiet.is_cancelled() {
            self.rest(60..300).await;
            let first = self.common.journal.number();
            let name = |number: u64| format!("{}-{first}-{number}", self.common.process);
            match self.rng.random_range(0..10) {
                0 => {
                    let items: Vec<String> = (0..3).map(name).collect();
                    self.put(&items, queue.put_all(&items)).await;
                }
                1..5 => {
                    let item = name(0);
                    self.put(std::slice::from_ref(&item), queue.put(&item)).await;
                }
                _ => self.put_once(&queue, &name(0)).await,
            }
        }
        Ok(())
    }

    /// Puts an item by its id, at times again: also after an answer, as a process does that has lost it.
    async fn put_once(&mut self, queue: &WorkQueue<String>, item: &str) {
        let value = item.to_owned();
        for _ in 0..3 {
            let put = async { queue.put_once(&value, item).await.map(drop) };
            let is_put = self.put(std::slice::from_ref(&value), put).await;
            if self.common.quiet.is_cancelled() || self.rng.random_bool(if is_put { 0.8 } else { 0.2 }) {
                return;
            }
        }
    }

    /// Whether the items were put, as far as is known.
    async fn put(&mut self, items: &[String], put: impl Future<Output = Result<(), Error>>) -> bool {
        let attempt = self.common.journal.number();
        self.say(What::Putting { attempt, items: items.to_vec() });
        match self.limited(put, 0.1, 0..60_000).await {
            Some(Ok(())) => {
                self.say(What::Put { attempt });
                return true;
            }
            Some(Err(error)) => {
                if error.outcome() == Outcome::NotApplied {
                    self.say(What::NotPut { attempt });
                }
                self.failed(attempt, &error);
            }
            None => {}
        }
        false
    }

    /// Takes items and ends them, until everyone is to be quiet.
    pub(super) async fn take_jobs(mut self) -> Result<(), Failure> {
        let queue = fixture::jobs(self.common.pool.for_path(JOBS))?;
        while !self.common.quiet.is_cancelled() {
            self.rest(0..20).await;
            let patience = Duration::from_millis(self.rng.random_range(200..5_000));
            let take = async {
                match patience.as_millis() % 10 {
                    0 => queue.try_take().await,
                    _ => queue.take_timeout(patience).await.map(Some),
                }
            };
            match self.limited(take, 0.1, 0..100_000).await {
                Some(Ok(Some(item))) => self.work_off(item).await,
                Some(Err(error)) => self.failed(self.common.journal.number(), &error),
                Some(Ok(None)) | None => {}
            }
        }
        Ok(())
    }

    /// Holds the item for a while, as a lock of its own, and ends it in one of the ways there are.
    async fn work_off(&mut self, item: WorkItem<String>) {
        let (common, name, lock) =
            (Arc::clone(&self.common), item.value().clone(), fixture::lock_of_job(item.value()));
        let (hold, token) = (common.journal.number(), Token::from(item.fencing_token()));
        self.say(What::Granted {
            attempt: hold,
            hold,
            lock: lock.clone(),
            mode: Mode::Alone,
            token,
            nodes: Vec::new(),
        });
        self.say(What::Taken { hold, path: item.path().to_string() });
        let long = self.rng.random_bool(0.05);
        let span = self.rng.random_range(if long { 500..2_500 } else { 0..40 });
        let is_valid = self.stay(&item, hold, Duration::from_millis(span)).await;
        if is_valid
            && self.rng.random_bool(0.2)
            && let Ok(accepted) = common.fenced.stamp(&lock, token, false).await
        {
            let at = clock::now();
            common.journal.say_at(at, self.task, What::Stamped { hold, accepted, valid: item.is_valid() });
        }
        self.say(What::Ended { hold });
        let is_bad = fixture::is_bad(&name);
        match self.rng.random_range(0..100) {
            // A lost item is ended as well: it must have no effect unless its taker still has it.
            0..75 if !is_bad => self.end(item, &name, hold).await,
            75..82 => drop(item),
            82..87 if is_valid => {
                let released = common.quiet.run_until_cancelled(item.release()).await;
                if let Some(released) = released {
                    let outcome = released.map_or_else(|error| error.to_string(), |()| "released".to_owned());
                    self.say(What::Released { hold, outcome });
                }
            }
            87..92 => {
                let delay = Duration::from_millis(self.rng.random_range(0..1_500));
                let retried = self.limited(item.retry_at(SystemTime::now() + delay), 0.1, 0..50_000).await;
                if let Some(Err(error)) = retried {
                    self.failed(hold, &error);
                }
            }
            _ => match self.limited(item.fail("it is a bad one"), 0.1, 0..50_000).await {
                Some(Ok(true)) => self.say(What::MovedToFailed { hold }),
                Some(Err(error)) => self.failed(hold, &error),
                Some(Ok(false)) | None => {}
            },
        }
    }

    /// Looks at the item until its time is up, it is lost, or everyone is to be quiet; whether it is valid.
    async fn stay(&self, item: &WorkItem<String>, hold: u64, span: Duration) -> bool {
        let end = clock::now() + u64::try_from(span.as_nanos()).unwrap_or_default();
        while self.common.look(self.task, hold, item.hold()).await {
            let left = Duration::from_nanos(end.saturating_sub(clock::now()));
            if left.is_zero() || self.common.quiet.is_cancelled() {
                return true;
            }
            // The next look finds the loss.
            let is_lost = tokio::time::timeout(left.min(LOOK), item.lost()).await.is_ok();
            if is_lost && item.is_valid() {
                let text = "lost() resolved, is_valid() says true".to_owned();
                self.say(What::Contradiction { hold, text });
                return true;
            }
        }
        false
    }

    async fn end(&mut self, item: WorkItem<String>, name: &str, hold: u64) {
        let (effect, by) = (fixture::effect_of(name), format!("{} {hold}", self.common.process));
        let ended = item.done_with(|txn| txn.create_sequential(effect, by));
        match self.limited(ended, 0.1, 0..50_000).await {
            Some(Ok(())) => self.say(What::Done { hold }),
            Some(Err(error)) => {
                if error.outcome() == Outcome::NotApplied {
                    self.say(What::NotDone { hold });
                }
                self.failed(hold, &error);
            }
            None => {}
        }
    }

    /// The result of a call; `None` if it was dropped, which is in this part of all calls after so many
    /// microseconds, or because everyone is to be quiet.
    async fn limited<T>(
        &mut self,
        call: impl Future<Output = T>,
        dropped: f64,
        microseconds: Range<u64>,
    ) -> Option<T> {
        let limit = match self.rng.random_bool(dropped) {
            true => Duration::from_micros(self.rng.random_range(microseconds)),
            false => LONG,
        };
        let quiet = self.common.quiet.clone();
        quiet.run_until_cancelled(tokio::time::timeout(limit, call)).await?.ok()
    }

    /// Adds ones to the entries of a table, until everyone is to be quiet.
    pub(super) async fn update(mut self) -> Result<(), Failure> {
        let table = Table::<i64>::new(self.common.pool.for_path(TABLE), TABLE)?;
        while !self.common.quiet.is_cancelled() {
            self.rest(10..100).await;
            let number = self.rng.random_range(0..ENTRIES.len());
            let entry = ENTRIES.get(number).copied().unwrap_or_default();
            let attempt = self.common.journal.number();
            self.say(What::Updating { attempt, entry: entry.to_owned() });
            let update = table.update(entry, |sum| Some(sum.copied().unwrap_or_default() + 1));
            match self.limited(update, 0.1, 0..50_000).await {
                Some(Ok(Some(entry))) => self.say(What::Updated { attempt, sum: entry.value }),
                Some(Ok(None)) => return Err("an entry that was written does not exist".into()),
                Some(Err(error)) => {
                    if error.outcome() == Outcome::NotApplied {
                        self.say(What::NotUpdated { attempt });
                    }
                    self.failed(attempt, &error);
                }
                None => {}
            }
        }
        Ok(())
    }
}
