//! The task that takes starts for the calls of this process, while there are any.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use lockkeeper_core::{
    ConnectionManager, Deadline, Error, Hold, ManagerExt, Phase, Ticket, WeakConnectionManager,
};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tracing::debug;

use super::ahead::RecordedStarts;
use super::delete::delete_if_over;
use super::encoding;
use super::limiter_queue;
use super::line::{AdmitAnswer, Line};
use super::numbers::LimiterKey;

/// No worker waits longer for the end of its window.
const A_YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// The pause before another try to delete a node.
const AGAIN: Duration = Duration::from_secs(1);

/// So many nodes are deleted at the same time: many keys may end at once, and none should be late for others.
const ENDINGS_MAX: usize = 64;

/// The turns to delete nodes of one manager.
struct Endings(Semaphore);

impl Default for Endings {
    fn default() -> Self {
        Self(Semaphore::new(ENDINGS_MAX))
    }
}

/// One for each line with calls. It stays until its starts count no more, and then deletes the node with the
/// window, if no other process has written to it since.
pub(super) struct LimiterWorker {
    pub(super) line: Arc<Line>,
    pub(super) key: LimiterKey,
    /// How long the last write took.
    pub(super) round_trip: Option<Duration>,
    /// When the starts that this worker knows of count no more. `None` if it knows nothing of the node.
    over: Option<Instant>,
    /// This worker may have written to the node: it deletes the node when it is over.
    pub(super) has_written: bool,
    /// A create of the node may be applied until then.
    late_until: Option<Instant>,
    /// The batches whose writes had no answer, and may still be applied.
    pub(super) in_doubt: Vec<CallBatch>,
    pub(super) batches: u64,
    has_ended: bool,
}

/// Calls whose starts are recorded by one write.
#[derive(Clone, Debug)]
pub(super) struct CallBatch {
    /// The numbers of the calls.
    pub(super) calls: Vec<u64>,
    pub(super) mark: String,
    /// The version that the write replaces.
    pub(super) version: i32,
    /// The answer to the calls, if the write was committed, and not before the servers' time `room_at`.
    pub(super) admitted: RecordedStarts,
    pub(super) room_at: i64,
}

impl LimiterWorker {
    pub(super) fn new(line: &Arc<Line>, key: LimiterKey) -> Self {
        let line = Arc::clone(line);
        Self {
            line,
            key,
            round_trip: None,
            over: None,
            has_written: false,
            late_until: None,
            in_doubt: Vec::new(),
            batches: 0,
            has_ended: false,
        }
    }

    pub(super) async fn run(mut self, manager: WeakConnectionManager) {
        loop {
            if self.line.is_empty() && !self.idle(&manager).await {
                // A call may have come meanwhile.
                if self.line.end_worker() {
                    self.has_ended = true;
                    return;
                }
                continue;
            }
            let Some(manager) = manager.upgrade() else { return };
            // Boxed: an idle worker is small.
            if let Err(error) = Box::pin(self.turn(&manager)).await {
                self.line.end(|_| Some(Err(error.clone())));
            }
        }
    }

    /// Waits for a call. Returns false once the starts count no more: then nothing is left to do.
    async fn idle(&mut self, manager: &WeakConnectionManager) -> bool {
        let Some(over) = self.over else { return false };
        tokio::select! {
            biased;
            () = self.line.until_called() => return true,
            () = manager.ended() => return false,
            () = tokio::time::sleep_until(over) => {}
        }
        if !self.has_written {
            self.over = None;
            return false;
        }
        let Some(endings) = manager.upgrade().map(|manager| manager.shared_table::<Endings>()) else {
            return false;
        };
        let _turn = tokio::select! {
            biased;
            // Its starts are recorded in the node that exists.
            () = self.line.until_called() => return true,
            () = manager.ended() => return false,
            // It is never closed.
            turn = endings.0.acquire() => turn,
        };
        let Some(manager) = manager.upgrade() else { return false };
        (self.over, self.has_written) = (None, false);
        let mut deleting = Box::pin(delete_if_over(&manager, &self.key));
        let deleted = loop {
            // In an outage the delete takes longer than a call may wait.
            if let Some(deleted) = self.beside_calls(&manager, &Phase::Answer, deleting.as_mut()).await {
                break deleted;
            }
        };
        debug!(path = %self.key.path(), ?deleted, "the window is over");
        let fails_for_now = deleted.is_err_and(|error| error.is_transient() || error.outcome_unknown());
        if fails_for_now {
            (self.over, self.has_written) = (Some(after(AGAIN)), true);
        }
        fails_for_now
    }

    /// Enters the queue once, for the calls that wait.
    async fn turn(&mut self, manager: &ConnectionManager) -> Result<(), Error> {
        let taken = async {
            if self.over.is_none() {
                self.begin_window(manager).await;
            }
            if self.line.is_empty() {
                return Ok(());
            }
            match self.wait_for_turn(manager).await? {
                Some(hold) => self.admit_under(manager, hold).await,
                None => Ok(()),
            }
        };
        let taken = tokio::select! {
            biased;
            () = manager.closing() => return Err(Error::Closed),
            taken = taken => taken,
        };
        match taken {
            // It queues again.
            Err(error) if error.is_lost() => Ok(()),
            taken => taken,
        }
    }

    /// The time for which an admission is fresh, also in milliseconds.
    pub(super) fn grace(&self) -> (Duration, i64) {
        let grace = self.key.grace(self.round_trip);
        (grace, i64::try_from(grace.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX / 4))
    }

    /// This worker writes the window, or has written it, whose starts count for so many milliseconds.
    pub(super) fn counts_for(&mut self, millis: i64) {
        let left = Duration::from_millis(millis.max(0).unsigned_abs());
        // The clocks of two machines differ a little.
        let over = after(left.saturating_add(left / 64).saturating_add(Duration::from_millis(100)));
        self.over = Some(self.late_until.map_or(over, |late| over.max(late)));
        self.has_written = true;
    }

    /// A create of the node has no answer, and may be applied for as long as a session lasts.
    pub(super) fn may_be_late(&mut self, manager: &ConnectionManager) {
        let late = after(manager.session_timeout());
        self.late_until = Some(late);
        self.over = self.over.max(Some(late));
    }

    /// Waits for the hold of the queue. `None` if no call is left.
    async fn wait_for_turn(&mut self, manager: &ConnectionManager) -> Result<Option<Hold>, Error> {
        let queue = limiter_queue(manager, self.key.path(), self.key.shared_path(), &self.line.data())?;
        let Some(ticket) = self.within(manager, Phase::Connecting, queue.enqueue(Deadline::never())).await
        else {
            return Ok(None);
        };
        let mut ticket = ticket?;
        while !self.line.is_empty() {
            let is_behind = ticket.position().is_some_and(|ahead| ahead > 0);
            if is_behind {
                self.look(manager).await?;
            }
            if let Some(hold) = self.wait_on(manager, &mut ticket, is_behind).await? {
                return Ok(Some(hold));
            }
        }
        Ok(None)
    }

    /// Waits until the earliest deadline of the calls, or until a call comes with an earlier one.
    async fn wait_on(
        &mut self,
        manager: &ConnectionManager,
        ticket: &mut Ticket,
        is_behind: bool,
    ) -> Result<Option<Hold>, Error> {
        let deadline = self.line.deadline();
        let mut wait = pin!(ticket.wait(deadline));
        loop {
            tokio::select! {
                biased;
                waited = &mut wait => match waited {
                    Ok(hold) => return Ok(Some(hold)),
                    Err(Error::Timeout { phase, .. }) => {
                        self.expire(manager, &phase);
                        return Ok(None);
                    }
                    Err(error) => return Err(error),
                },
                () = self.line.changed.notified() => {}
            }
            if is_behind {
                self.look(manager).await?;
            }
            if self.line.is_empty() || is_earlier(self.line.deadline(), deadline) {
                return Ok(None);
            }
        }
    }

    /// Reads the window without a hold: it ends the calls for which there is certainly no room in time.
    async fn look(&mut self, manager: &ConnectionManager) -> Result<(), Error> {
        if !self.line.note_new_calls() {
            return Ok(());
        }
        let read = self.within(manager, Phase::Answer, manager.znodes().read(self.key.path())).await;
        let (data, stat) = match read {
            Some(Ok(Some(read))) => read,
            // It grants nothing, so the calls wait for their turn.
            Some(Err(error)) if error.is_transient() => return Ok(()),
            Some(Err(error)) => return Err(error),
            Some(Ok(None)) | None => return Ok(()),
        };
        let Some(recorded) = encoding::decode(&data, stat.mtime) else { return Ok(()) };
        // A limit that can change is probably the one that was written last.
        let starts = self.key.fixed_starts().or_else(|| recorded.limits.map(|limits| limits.starts));
        if let Some(starts) = starts {
            let estimated = stat.mtime.max(manager.estimated_server_time().unwrap_or(i64::MIN));
            self.turn_down(manager, &recorded.window, starts, estimated);
        }
        Ok(())
    }

    /// Waits for `work`, and ends the calls whose deadline passes meanwhile. `None` if no call is left.
    pub(super) async fn within<T>(
        &self,
        manager: &ConnectionManager,
        phase: Phase,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        let mut work = pin!(work);
        loop {
            let done = self.beside_calls(manager, &phase, work.as_mut()).await;
            if done.is_some() || self.line.is_empty() {
                return done;
            }
        }
    }

    /// Waits for `work`, or until a call begins or ends: `None`. Ends the calls whose deadline has passed.
    async fn beside_calls<T>(
        &self,
        manager: &ConnectionManager,
        phase: &Phase,
        work: Pin<&mut impl Future<Output = T>>,
    ) -> Option<T> {
        tokio::select! {
            biased;
            done = work => return Some(done),
            () = self.line.deadline().passed() => self.expire(manager, phase),
            () = self.line.moved() => {}
        }
        None
    }

    /// Ends the calls whose deadline has passed in this phase.
    pub(super) fn expire(&self, manager: &ConnectionManager, phase: &Phase) {
        let path = manager.whole_path(self.key.path());
        self.line.end(|call| {
            if !call.deadline.has_passed() {
                return None;
            }
            Some(match phase {
                Phase::Queued { ahead, .. } if !call.waits => {
                    let limit = self.key.fixed_starts().or_else(|| self.line.limit()).unwrap_or(1);
                    Ok(AdmitAnswer::Later { retry_after: self.key.time_of(*ahead, limit) })
                }
                phase => {
                    let (phase, path, waited) = (phase.clone(), path.clone(), call.deadline.waited());
                    Err(Error::Timeout { phase, path, waited })
                }
            })
        });
    }
}

fn after(time: Duration) -> Instant {
    Instant::now().checked_add(time).unwrap_or_else(|| Instant::now() + A_YEAR)
}

fn is_earlier(one: Deadline, other: Deadline) -> bool {
    let left = |deadline: Deadline| deadline.left().unwrap_or(Duration::MAX);
    left(one) < left(other)
}

impl Drop for LimiterWorker {
    /// The runtime is shut down, or the manager has gone.
    fn drop(&mut self) {
        if !self.has_ended {
            self.line.abandon();
        }
    }
}
