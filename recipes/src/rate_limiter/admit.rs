//! The head of the queue: it reads the starts, waits until there is room, and records its own starts.

use std::time::Duration;

use futures::future::join_all;
use lockkeeper_core::{Deadline, Error, ExchangeError, Hold, Operation, Phase, ReadResult, Refusal};

use tracing::debug;

use super::error::waiting_for_starts;
use super::window::{AdmitDecision, Start, decide, decode, encode};
use super::{Admission, RateLimiter, START};

/// A transaction deletes starts that are over: as many as it creates, and this number more.
const SWEPT_BESIDE: u32 = 8;

/// The reason why the head started nothing.
#[derive(Debug)]
pub(super) enum NotAdmitted {
    /// The hold of the queue was lost, or its reads may have been stale: queue again, at the end.
    Restart,
    /// There is no room before the deadline.
    NoRoom(NoRoom),
    /// The acquire fails.
    Failed(Error),
}

/// The starts that are asked for have no room now.
#[derive(Debug)]
pub(super) struct NoRoom {
    /// For the error.
    pub(super) phase: Phase,
    /// The time until there may be room.
    pub(super) retry_after: Duration,
}

impl From<Error> for NotAdmitted {
    fn from(error: Error) -> Self {
        match error {
            Error::Lost(_) => Self::Restart,
            error => Self::Failed(error),
        }
    }
}

impl RateLimiter {
    /// Exchanges a hold of the queue for starts. Waits for room only if there is a deadline.
    pub(super) async fn spend(
        &self,
        hold: Hold,
        asked: u32,
        wait: Option<Deadline>,
    ) -> Result<Admission, NotAdmitted> {
        // The acquire queues again after a loss of its turn.
        hold.defer_loss_report();
        tokio::select! {
            biased;
            // Polled first at each step. A start that is recorded meanwhile counts, and admits no caller.
            () = self.manager.closing() => Err(Error::Closed.into()),
            admitted = self.record(hold, asked, wait) => admitted,
        }
    }

    async fn record(
        &self,
        mut hold: Hold,
        asked: u32,
        wait: Option<Deadline>,
    ) -> Result<Admission, NotAdmitted> {
        let limit = wait.unwrap_or_else(|| Deadline::after(self.manager.operation_timeout()));
        loop {
            let names = match hold.read(limit).await?.into_iter().next() {
                Some(ReadResult::Children { names, .. }) => names,
                _ => Vec::new(),
            };
            // No other contender adds starts while this one is the head.
            let Some(starts) = self.read(&hold, &names, limit).await? else { continue };
            let over = self.until_there_is_room(&hold, &starts, asked, wait, limit).await?;
            let mut exchange = hold.exchange();
            let data = encode(self.span(), &self.signed_data());
            for _ in 0..asked {
                exchange = exchange.create_persistent(&self.starts, START, data.as_slice());
            }
            for (name, _) in over.iter().zip(0..asked.saturating_add(SWEPT_BESIDE)) {
                exchange = exchange.delete(&self.starts.child(name).map_err(Error::from)?);
            }
            match exchange.commit(limit).await {
                Ok(done) => {
                    // The start counts from its transaction. That may be any of the tries without an answer,
                    // long before its node was found. So the first try decides until when the admission is
                    // fresh.
                    let admission = Admission::new(&self.manager, asked, done.sent.after(self.grace));
                    // A read over another connection may have been stale. The caller checks whether the
                    // admission came too late: another try here could use up one start after another.
                    return match done.reads_current {
                        true => Ok(admission),
                        false => Err(NotAdmitted::Restart),
                    };
                }
                Err(ExchangeError::NotDone { hold: kept, refused }) => match refused {
                    Some((path, refusal)) if refusal != Refusal::NoNode && !refusal.is_transient() => {
                        return Err(Error::Refused { operation: Operation::Commit, path, refusal }.into());
                    }
                    _ => hold = *kept,
                },
                // A start that is recorded nevertheless counts, and admits no caller.
                Err(ExchangeError::Failed(Error::Unknown { .. })) if limit.has_passed() => {
                    return Err(self.no_answer(limit));
                }
                Err(ExchangeError::Failed(error)) => return Err(error.into()),
            }
        }
    }

    /// The starts of these names whose nodes still exist. `None` if the link broke, and they must be read
    /// again.
    pub(super) async fn read(
        &self,
        hold: &Hold,
        names: &[String],
        limit: Deadline,
    ) -> Result<Option<Vec<(String, Start)>>, NotAdmitted> {
        self.cache.keep(names);
        let znodes = self.manager.znodes();
        let unknown = names.iter().filter(|name| self.cache.of(name).is_none());
        let reads = join_all(unknown.map(async |name| {
            if let Some((data, stat)) = znodes.read(&self.starts.child(name)?).await? {
                self.cache.enter(name.clone(), Start { at: stat.ctime, span: decode(&data) });
            }
            Ok::<_, Error>(())
        }));
        let read = tokio::select! {
            biased;
            lost = hold.lost() => return Err(Error::Lost(lost).into()),
            read = reads => read,
            () = limit.passed() => return Err(self.no_answer(limit)),
        };
        match read.into_iter().collect::<Result<(), Error>>() {
            Ok(()) => {}
            // The next read waits for a connection.
            Err(error) if error.is_transient() => {
                debug!(path = %self.whole_path(), %error, "reading the starts again");
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        }
        let cache = |name: &String| Some((name.clone(), self.cache.of(name)?));
        Ok(Some(names.iter().filter_map(cache).collect()))
    }

    fn no_answer(&self, limit: Deadline) -> NotAdmitted {
        let (path, waited) = (self.whole_path(), limit.waited());
        Error::Timeout { phase: Phase::Answer, path, waited }.into()
    }

    /// Waits until there is room for `asked` starts. Returns the names of the starts that are over.
    async fn until_there_is_room(
        &self,
        hold: &Hold,
        starts: &[(String, Start)],
        asked: u32,
        wait: Option<Deadline>,
        limit: Deadline,
    ) -> Result<Vec<String>, NotAdmitted> {
        let times: Vec<Start> = starts.iter().map(|(_, start)| *start).collect();
        let mut now = None;
        loop {
            match decide(&times, self.limit, asked, self.span(), now) {
                AdmitDecision::Admit { over } => {
                    let name = |place: &usize| Some(starts.get(*place)?.0.clone());
                    return Ok(over.iter().filter_map(name).collect());
                }
                AdmitDecision::NeedServerTime => {}
                AdmitDecision::Wait { millis, free } => {
                    let pause = Duration::from_millis(millis.max(1).unsigned_abs());
                    let full = || {
                        let phase = waiting_for_starts(free, asked);
                        NotAdmitted::NoRoom(NoRoom { phase, retry_after: pause })
                    };
                    if wait.is_none() {
                        return Err(full());
                    }
                    tokio::select! {
                        biased;
                        lost = hold.lost() => return Err(Error::Lost(lost).into()),
                        () = limit.passed() => return Err(full()),
                        () = tokio::time::sleep(pause) => {}
                    }
                }
            }
            // The time of the sleep proves nothing. A write to our own node shows the servers' time.
            now = Some(hold.server_time(limit).await?);
        }
    }
}
