//! One turn at the head of the line: look, wait until there is room, and write the starts down.

use std::time::Duration;

use futures::future::join_all;
use lockkeeper_core::{Deadline, Error, ExchangeError, Hold, Operation, Phase, ReadResult, Refusal};

use tracing::debug;

use super::error::waiting_for_starts;
use super::window::{AdmitDecision, Start, decide, decode, encode};
use super::{Admission, RateLimiter, START};

/// So many starts that are over are removed beside as many as are made.
const SWEPT_BESIDE: usize = 8;

/// Why a turn ended without a start.
#[derive(Debug)]
pub(super) enum NotAdmitted {
    /// The turn was lost, or rested on what may have been out of date: start over at the end of the line.
    Restart,
    /// There is no room within the time given.
    NoRoom(Phase),
    /// Tell the caller.
    Failed(Error),
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
    /// Spends a hold of the line. Waits for room only where there is a deadline.
    pub(super) async fn spend(
        &self,
        hold: Hold,
        asked: usize,
        wait: Option<Deadline>,
    ) -> Result<Admission, NotAdmitted> {
        tokio::select! {
            biased;
            // Looked at first at each step: what is written down meanwhile counts, and admits nobody.
            () = self.manager.closing() => Err(Error::Closed.into()),
            admitted = self.write_down(hold, asked, wait) => admitted,
        }
    }

    async fn write_down(
        &self,
        mut hold: Hold,
        asked: usize,
        wait: Option<Deadline>,
    ) -> Result<Admission, NotAdmitted> {
        let limit = wait.unwrap_or_else(|| Deadline::after(self.manager.operation_timeout()));
        loop {
            let names = match hold.read(limit).await?.into_iter().next() {
                Some(ReadResult::Children { names, .. }) => names,
                _ => Vec::new(),
            };
            // Nobody adds to them while we are in front.
            let Some(starts) = self.read(&hold, &names, limit).await? else { continue };
            let over = self.until_there_is_room(&hold, &starts, asked, wait, limit).await?;
            let mut exchange = hold.exchange();
            let data = encode(self.span(), &self.signed_data());
            for _ in 0..asked {
                exchange = exchange.create_persistent(&self.starts, START, &data);
            }
            for name in over.iter().take(asked.saturating_add(SWEPT_BESIDE)) {
                exchange = exchange.delete(&self.starts.child(name).map_err(Error::from)?);
            }
            match exchange.commit(limit).await {
                Ok(done) => {
                    // The start counts from its transaction. That may be any of the tries without an answer, and long
                    // before its node was found: the first of them says until when it is fresh.
                    let admission = Admission::new(&self.manager, asked, done.sent.after(self.grace));
                    // What was seen over another connection may have been out of date. That it may have come too late is
                    // for the caller to see: to try again here could use up one start after another.
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
                Err(ExchangeError::Failed(error)) => return Err(error.into()),
            }
        }
    }

    /// The starts of these names whose nodes are still there; `None` when the link broke, and they are to be asked for again.
    async fn read(
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
            () = limit.passed() => {
                let (path, waited) = (self.path.to_string(), limit.waited());
                return Err(Error::Timeout { phase: Phase::Answer, path, waited }.into());
            }
        };
        match read.into_iter().collect::<Result<(), Error>>() {
            Ok(()) => {}
            // The next look waits for a connection.
            Err(error) if error.is_transient() => {
                debug!(path = %self.path, %error, "reading the starts again");
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        }
        let cache = |name: &String| Some((name.clone(), self.cache.of(name)?));
        Ok(Some(names.iter().filter_map(cache).collect()))
    }

    /// Waits until `asked` may start; yields the names of those that are over.
    async fn until_there_is_room(
        &self,
        hold: &Hold,
        starts: &[(String, Start)],
        asked: usize,
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
                AdmitDecision::Wait { free, .. } if wait.is_none() => return Err(self.full(free, asked)),
                AdmitDecision::Wait { millis, free } => {
                    let pause = Duration::from_millis(millis.max(1).unsigned_abs());
                    tokio::select! {
                        biased;
                        lost = hold.lost() => return Err(Error::Lost(lost).into()),
                        () = limit.passed() => return Err(self.full(free, asked)),
                        () = tokio::time::sleep(pause) => {}
                    }
                }
            }
            // How long was slept says nothing: the servers tell the time, by a write to our own node.
            now = Some(hold.write_own_node(&self.signed_data(), limit).await?.mtime);
        }
    }

    fn full(&self, free: usize, asked: usize) -> NotAdmitted {
        NotAdmitted::NoRoom(waiting_for_starts(free, asked))
    }
}
