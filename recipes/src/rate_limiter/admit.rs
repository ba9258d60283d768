//! The head of the queue: it reads the starts, waits until there is room, and records its own starts.

use std::time::Duration;

use futures::future::join_all;
use lockkeeper_core::{
    ConnectionManager, Deadline, Error, ExchangeError, Hold, HoldExt, LockQueue, Operation, Phase,
    ReadResult, Refusal, ZnodePath,
};

use tracing::debug;

use super::decide::{AdmitDecision, Start, decide, decode, encode};
use super::error::waiting_for_starts;
use super::{Admission, RateLimiter, START};
use crate::lock::at_head::{AtHead, HeadLimit, NotNow, NotTaken};
use crate::owner;

/// A transaction deletes starts that are over: as many as it creates, and this number more.
const SWEPT_BESIDE: u32 = 8;

/// A request for starts.
pub(super) struct StartRequest<'a> {
    pub(super) limiter: &'a RateLimiter,
    pub(super) asked: u32,
}

impl AtHead for StartRequest<'_> {
    type Taken = Admission;

    fn manager(&self) -> &ConnectionManager {
        &self.limiter.manager
    }

    fn path(&self) -> &ZnodePath {
        &self.limiter.path
    }

    fn queue(&self, _: Deadline) -> LockQueue {
        self.limiter.queue()
    }

    /// Waits until there is room, records the starts and leaves the queue, by one transaction. A start that
    /// is recorded after the call has ended counts, and admits no caller.
    async fn decide(&self, slot: &mut Option<Hold>, limit: HeadLimit) -> Result<Admission, NotTaken> {
        let hold = slot.take().ok_or(NotTaken::Restart)?;
        self.limiter.record(hold, self.asked, limit).await
    }
}

impl RateLimiter {
    async fn record(&self, mut hold: Hold, asked: u32, limit: HeadLimit) -> Result<Admission, NotTaken> {
        let deadline = limit.deadline;
        loop {
            let names = match hold.read(deadline).await?.into_iter().next() {
                Some(ReadResult::Children { names, .. }) => names,
                _ => Vec::new(),
            };
            // No other contender adds starts while this one is the head.
            let Some(starts) = self.read(&hold, &names, deadline).await? else { continue };
            let over = self.until_there_is_room(&hold, &starts, asked, limit).await?;
            let mut exchange = hold.exchange();
            let data = encode(self.span(), &owner::signed(&self.data));
            for _ in 0..asked {
                exchange = exchange.create_persistent(&self.starts, START, data.as_slice());
            }
            for (name, _) in over.iter().zip(0..asked.saturating_add(SWEPT_BESIDE)) {
                exchange = exchange.delete(&self.starts.child(name).map_err(Error::from)?);
            }
            match exchange.commit(deadline).await {
                Ok(done) => {
                    // The start counts from its transaction. That may be any of the tries without an answer,
                    // long before its node was found. So the first try decides until when the admission is
                    // fresh.
                    let admission = Admission::new(&self.manager, asked, done.sent.after(self.grace));
                    // A read over another connection may have been stale. The caller checks whether the
                    // admission came too late: another try here could use up one start after another.
                    return match done.reads_current {
                        true => Ok(admission),
                        false => Err(NotTaken::Restart),
                    };
                }
                Err(ExchangeError::NotDone { hold: kept, refused }) => match refused {
                    Some((path, refusal)) if refusal != Refusal::NoNode && !refusal.is_transient() => {
                        return Err(Error::Refused { operation: Operation::Commit, path, refusal }.into());
                    }
                    _ => hold = *kept,
                },
                // A start that is recorded nevertheless counts, and admits no caller.
                Err(ExchangeError::Failed(Error::Unknown { .. })) if deadline.has_passed() => {
                    return Err(self.no_answer(deadline));
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
    ) -> Result<Option<Vec<(String, Start)>>, NotTaken> {
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

    fn no_answer(&self, limit: Deadline) -> NotTaken {
        let (path, waited) = (self.whole_path(), limit.waited());
        Error::Timeout { phase: Phase::Answer, path, waited }.into()
    }

    /// Waits until there is room for `asked` starts. Returns the names of the starts that are over.
    async fn until_there_is_room(
        &self,
        hold: &Hold,
        starts: &[(String, Start)],
        asked: u32,
        limit: HeadLimit,
    ) -> Result<Vec<String>, NotTaken> {
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
                        NotTaken::NotNow(NotNow { phase, retry_after: Some(pause) })
                    };
                    if !limit.waits {
                        return Err(full());
                    }
                    tokio::select! {
                        biased;
                        lost = hold.lost() => return Err(Error::Lost(lost).into()),
                        () = limit.deadline.passed() => return Err(full()),
                        () = tokio::time::sleep(pause) => {}
                    }
                }
            }
            // The time of the sleep proves nothing. A write to our own node shows the servers' time.
            now = Some(hold.server_time(limit.deadline).await?);
        }
    }
}
