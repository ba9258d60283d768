//! The head of the queue: it reads the window, waits until there is room, and records the starts of a batch.

use std::time::Duration;

use lockkeeper_core::{
    BootInstant, Changes, ConnectionManager, Deadline, Error, Hold, HoldExt, ManagerExt, Operation, Phase,
    ReadResult, Refusal, TxnError, TxnResult,
};

use super::ahead::RecordedStarts;
use super::decide::{LimiterStep, Now, TurnLimits, Window, WindowRecord, next};
use super::encoding::{self, StartsClaim};
use super::error::{RateLimiterError, waiting_for_starts};
use super::line::{AdmitAnswer, SeenCall};
use super::numbers::StartsLimit;
use super::worker::{CallBatch, LimiterWorker};
use crate::semaphore::SharedLimit;

/// So many batches a process takes in one turn.
const BATCHES_MAX: u32 = 32;

/// A server that is too busy is asked again after this time.
const PAUSE: Duration = Duration::from_millis(50);

/// What the head knows.
struct Head {
    window: Window,
    /// The version of the node.
    version: i32,
    /// The servers' time: see [`Now::proven`].
    proven: i64,
    /// The time of the last write of this turn, and when its answer came.
    shown: Option<(i64, BootInstant)>,
    /// The contenders in the queue, with this one.
    contenders: u32,
    /// The starts in a window.
    starts: u32,
    /// The version of the node with the limit, if it can change.
    limit_version: Option<i32>,
    /// Report another limit, if it is watched.
    changes: Option<Changes>,
}

/// What a process has done in its turn.
struct TurnProgress {
    batches_left: u32,
    /// The starts that it has taken.
    taken: u32,
    /// When it took the first ones, and the last call that waited then.
    first_batch: Option<(BootInstant, u64)>,
}

/// The end of a wait for room.
enum Waited {
    /// Decide again.
    Done,
    /// The limit can change, and is not watched or has changed: read again, with a watch.
    Watch,
    /// The turn is over: the hold was lost, or no call is left.
    Over,
}

/// What became of a write.
enum Write {
    Done,
    /// There was no room yet at the time that the write has shown: its starts admit nobody.
    TooEarly,
    /// It was refused, or has no answer: read again.
    ReadAgain,
    /// The servers refused it for a while.
    Busy,
    /// The turn is over: the hold was lost, or no call is left.
    Over,
}

impl LimiterWorker {
    /// Admits calls under this hold, until none is left or others have their turn.
    pub(super) async fn admit_under(
        &mut self,
        manager: &ConnectionManager,
        mut hold: Hold,
    ) -> Result<(), Error> {
        // The turn is taken again after its loss.
        hold.defer_loss_report();
        let mut turn = TurnProgress { batches_left: BATCHES_MAX, taken: 0, first_batch: None };
        let mut watches = false;
        loop {
            let Some(mut head) = self.read(manager, &mut hold, watches).await? else { return Ok(()) };
            watches = false;
            loop {
                if head.limit_version.is_some() {
                    self.refuse_too_many(manager, head.starts);
                }
                let calls = self.calls(&turn, &head);
                let last = calls.last().map_or(0, |call| call.number);
                if calls.is_empty() || turn.batches_left == 0 {
                    return Ok(());
                }
                let asked: Vec<u32> = calls.iter().map(|call| call.asked).collect();
                let (now, limits) = (head.now(manager), self.key.limits(head.starts));
                let (calls, mut starts) =
                    match next(&head.window, limits, now, &asked, self.turn_limits(manager, &turn, &head)) {
                        LimiterStep::Admit { requests, starts } => {
                            (calls.iter().take(requests).map(|call| call.number).collect(), starts)
                        }
                        LimiterStep::LearnTime => (Vec::new(), 0),
                        LimiterStep::Wait(millis) => {
                            match self.wait_for_room(manager, &hold, &mut head, now, millis).await {
                                Waited::Done => continue,
                                Waited::Watch => watches = true,
                                Waited::Over => return Ok(()),
                            }
                            break;
                        }
                        LimiterStep::HandOver => return Ok(()),
                    };
                let mut written = self.write(manager, &hold, &mut head, calls, starts).await?;
                if matches!(written, Write::TooEarly) {
                    // The same window without these starts.
                    written = self.write(manager, &hold, &mut head, Vec::new(), 0).await?;
                    starts = 0;
                }
                match written {
                    Write::Done if starts > 0 => {
                        turn.batches_left -= 1;
                        turn.taken = turn.taken.saturating_add(starts);
                        turn.first_batch.get_or_insert_with(|| (manager.now(), last));
                    }
                    Write::Done | Write::TooEarly => {}
                    Write::ReadAgain => break,
                    Write::Busy => {
                        self.within(manager, Phase::Answer, tokio::time::sleep(PAUSE)).await;
                        break;
                    }
                    Write::Over => return Ok(()),
                }
            }
        }
    }

    /// The calls that this turn may admit.
    fn calls(&self, turn: &TurnProgress, head: &Head) -> Vec<SeenCall> {
        let mut calls = self.line.seen();
        if let Some((_, last)) = turn.first_batch.filter(|_| head.contenders > 1) {
            // Later calls wait behind the others.
            calls.retain(|call| call.number <= last);
        }
        calls
    }

    fn turn_limits(&self, manager: &ConnectionManager, turn: &TurnProgress, head: &Head) -> TurnLimits {
        let left = self.key.patience(self.round_trip, head.contenders);
        let gone = turn.first_batch.map_or(Duration::ZERO, |(since, _)| manager.now().since(since));
        let patience = i64::try_from(left.saturating_sub(gone).as_millis()).unwrap_or(i64::MAX);
        TurnLimits { contenders: head.contenders, taken: turn.taken, patience }
    }

    /// Reads the window and the limit. `None` if the turn is over.
    async fn read(
        &mut self,
        manager: &ConnectionManager,
        hold: &mut Hold,
        watches: bool,
    ) -> Result<Option<Head>, Error> {
        let path = self.key.path();
        let reading = async {
            Ok::<_, Error>(match watches {
                true => hold.watch(Deadline::never()).await.map(|(read, changes)| (read, Some(changes)))?,
                false => (hold.read(Deadline::never()).await?, None),
            })
        };
        let Some(read) = self.within(manager, Phase::Answer, reading).await else { return Ok(None) };
        let (read, changes) = read?;
        let mut read = read.into_iter();
        // The node of this contender is in the directory, so the directory exists, or the hold is lost.
        let Some(ReadResult::Data { data, stat }) = read.next() else { return Ok(None) };
        let whole = || manager.whole_path(path);
        let Some(recorded) = encoding::decode(&data, stat.mtime) else {
            // A limiter of an earlier version has a directory here.
            let starts = path.child("starts")?;
            let earlier = self.within(manager, Phase::Answer, manager.znodes().read(&starts)).await;
            return Err(match earlier {
                Some(Ok(Some(_))) => RateLimiterError::EarlierLayout { path: whole() },
                _ => RateLimiterError::ForeignNode { path: whole() },
            }
            .into());
        };
        let (starts, limit_version) = self.limit(manager, read.next())?;
        let latest = recorded.window.records().last().map_or(i64::MIN, |record| record.at);
        let proven = stat.mtime.max(latest);
        let mut in_doubt = self.in_doubt.iter();
        let applied = in_doubt.find(|batch| recorded.mark.as_ref() == Some(&batch.mark));
        if let Some(batch) = applied.filter(|batch| batch.room_at <= proven) {
            self.line.admit(&batch.calls, batch.admitted, manager.now());
        }
        // A write that was not applied yet can be, as long as the node has the version that it replaces.
        self.in_doubt.retain(|batch| batch.version == stat.version);
        Ok(Some(Head {
            window: recorded.window,
            version: stat.version,
            proven,
            shown: None,
            contenders: stat.children.try_into().unwrap_or(1),
            starts,
            limit_version,
            changes,
        }))
    }

    /// The starts in a window, and the version of the node that says so, if it can change.
    fn limit(
        &self,
        manager: &ConnectionManager,
        read: Option<ReadResult>,
    ) -> Result<(u32, Option<i32>), Error> {
        let shared = match self.key.starts() {
            StartsLimit::Fixed(starts) => return Ok((*starts, None)),
            StartsLimit::Shared(path) => SharedLimit::new(manager, path)?,
        };
        let Some(ReadResult::Data { data, stat }) = read else { return Err(shared.missing()) };
        let starts = shared.decode(&data)?;
        self.line.set_limit(starts);
        Ok((starts, Some(stat.version)))
    }

    /// Ends the calls that ask for more starts than a window has: the limit may have changed since they came.
    fn refuse_too_many(&self, manager: &ConnectionManager, limit: u32) {
        self.line.end(|call| {
            let (path, asked) = (manager.whole_path(self.key.path()), call.asked);
            (asked > limit).then(|| Err(RateLimiterError::TooManyStarts { path, asked, limit }.into()))
        });
    }

    /// Records starts for these calls, and learns the servers' time.
    async fn write(
        &mut self,
        manager: &ConnectionManager,
        hold: &Hold,
        head: &mut Head,
        calls: Vec<u64>,
        starts: u32,
    ) -> Result<Write, Error> {
        let limits = self.key.limits(head.starts);
        let (path, window) = (self.key.path().clone(), limits.window);
        self.batches += 1;
        let mark = format!("{}-{}", hold.path().rsplit('/').next().unwrap_or_default(), self.batches);
        let (grace, grace_millis) = self.grace();
        let claim = StartsClaim { starts, grace: grace_millis, mark: mark.clone() };
        head.window.forget_over(window, head.proven);
        let data = encoding::encode(limits, &claim, &head.window);
        let room_at = head.window.room_at(limits, starts);
        // Also if the write has no answer.
        self.counts_for(window.saturating_add(grace_millis));
        let sent = manager.now();
        let admitted = RecordedStarts { sent, grace };
        let txn = hold.txn().set(path, data, head.version);
        // Starts are recorded only under the limit that they were decided by.
        let txn = match (self.key.shared_path(), head.limit_version) {
            (Some(limit), Some(version)) if starts > 0 => txn.check(limit, version),
            _ => txn,
        };
        let Some(committed) = self.within(manager, Phase::Answer, txn.commit()).await else {
            return Ok(Write::Over);
        };
        let stat = match committed {
            Ok(results) => match results.into_iter().next() {
                Some(TxnResult::Written { stat, .. }) => stat,
                _ => return Ok(Write::ReadAgain),
            },
            Err(error) => {
                return self.after_failed_write(
                    error,
                    CallBatch { calls, mark, admitted, room_at, version: head.version },
                );
            }
        };
        let observed = manager.now();
        self.round_trip = Some(observed.since(sent));
        head.version = stat.version;
        head.proven = head.proven.max(stat.mtime);
        head.shown = Some((stat.mtime, observed));
        head.contenders = stat.children.try_into().unwrap_or(1);
        if starts > 0 && room_at > head.proven {
            return Ok(Write::TooEarly);
        }
        if starts > 0 {
            // Not earlier than what was seen before, also if the clock of another leader is behind.
            head.window.add(WindowRecord { at: head.proven, starts, grace: grace_millis });
            self.line.admit(&calls, admitted, observed);
        }
        self.counts_for(head.window.over_at(window).map_or(0, |over| over.saturating_sub(head.proven)));
        Ok(Write::Done)
    }

    fn after_failed_write(&mut self, error: TxnError, batch: CallBatch) -> Result<Write, Error> {
        match error {
            TxnError::Lost(_) => Ok(Write::Over),
            // Another client wrote to the node, or it was deleted by hand. Or the limit was changed.
            TxnError::Refused { refusal: Refusal::BadVersion | Refusal::NoNode, .. } => Ok(Write::ReadAgain),
            TxnError::Refused { refusal, .. } if refusal.is_transient() => Ok(Write::Busy),
            TxnError::Refused { path, refusal, .. } => {
                Err(Error::Refused { operation: Operation::Commit, path, refusal })
            }
            TxnError::Failed(error) if error.outcome_unknown() => {
                // The next read shows it, if no other process writes before. If not, the starts are used up.
                self.in_doubt.push(batch);
                Ok(Write::ReadAgain)
            }
            error if error.is_transient() => Ok(Write::Busy),
            error => Err(error.into()),
        }
    }

    /// Waits for so many milliseconds, or until the calls are other ones, or the limit is another one.
    async fn wait_for_room(
        &mut self,
        manager: &ConnectionManager,
        hold: &Hold,
        head: &mut Head,
        now: Now,
        millis: i64,
    ) -> Waited {
        let estimated = now.estimated.unwrap_or(now.proven);
        self.turn_down(manager, &head.window, head.starts, estimated);
        let Some(first) = self.line.seen().first().copied() else { return Waited::Over };
        if head.limit_version.is_some() && head.changes.is_none() {
            return Waited::Watch;
        }
        let limit_changed = async {
            match &mut head.changes {
                Some(changes) => changes.any().await,
                None => std::future::pending().await,
            }
        };
        let limits = self.key.limits(head.starts);
        let free = limits.starts.saturating_sub(head.window.used(limits.window, estimated));
        let pause = Duration::from_millis(millis.max(1).unsigned_abs());
        tokio::select! {
            biased;
            _ = hold.lost() => return Waited::Over,
            () = limit_changed => return Waited::Watch,
            () = self.line.deadline().passed() => {
                self.expire(manager, &waiting_for_starts(free, first.asked));
            }
            () = self.line.changed.notified() => {}
            () = tokio::time::sleep(pause) => {}
        }
        Waited::Done
    }

    /// Ends the calls for which there is certainly no room in time.
    pub(super) fn turn_down(&self, manager: &ConnectionManager, window: &Window, starts: u32, now: i64) {
        let limits = self.key.limits(starts);
        let mut ahead = 0_u64;
        self.line.end(|call| {
            let retry_after = |millis: i64| Duration::from_millis(millis.max(1).unsigned_abs());
            let wait = window.wait(limits, ahead, call.asked, now);
            if !call.waits && wait > 0 {
                return Some(Ok(AdmitAnswer::Later { retry_after: retry_after(wait) }));
            }
            // Calls ahead may end, but starts that are recorded stay.
            let alone = window.wait(limits, 0, call.asked, now);
            let left = call.deadline.left().filter(|_| alone > 0);
            if left.is_some_and(|left| left < retry_after(alone)) {
                let (path, asked) = (manager.whole_path(self.key.path()), call.asked);
                let (waited, retry_after) = (call.deadline.waited(), retry_after(wait.max(alone)));
                let limit = waited.saturating_add(call.deadline.left().unwrap_or_default());
                return Some(
                    Err(RateLimiterError::NoRoom { path, asked, limit, waited, retry_after }.into()),
                );
            }
            ahead = ahead.saturating_add(call.asked.into());
            None
        });
    }
}

impl Head {
    fn now(&self, manager: &ConnectionManager) -> Now {
        let passed =
            |since: BootInstant| i64::try_from(manager.now().since(since).as_millis()).unwrap_or(i64::MAX);
        let estimated = match self.shown {
            Some((time, at)) => Some(time.saturating_add(passed(at))),
            // It may be wrong, as by another clock.
            None => manager.estimated_server_time(),
        };
        Now { proven: self.proven, estimated }
    }
}
