//! The first starts of a window: the create of the node records them, without a contender.

use lockkeeper_core::{ConnectionManager, Deadline, ManagerExt, Phase};

use super::ahead::RecordedStarts;
use super::decide::{LimiterStep, Now, TurnLimits, Window, WindowRecord, next};
use super::encoding::{self, StartsClaim};
use super::limiter_queue;
use super::worker::{CallBatch, LimiterWorker};

/// No write replaces this version: a create needs that the node does not exist.
const NO_VERSION: i32 = -1;

impl LimiterWorker {
    /// Creates the node with the starts of the calls that wait, if it does not exist: then nothing is
    /// recorded, so there is room for as many as a window has.
    ///
    /// What this does not admit takes a turn in the queue, also after an error: a turn reports it, if it
    /// remains.
    pub(super) async fn begin_window(&mut self, manager: &ConnectionManager) {
        // A limit that can change has to be read.
        let Some(limit) = self.key.fixed_starts() else { return };
        let seen = self.line.seen();
        let asked: Vec<u32> = seen.iter().map(|call| call.asked).collect();
        let (limits, mut window) = (self.key.limits(limit), Window::default());
        let now = Now { proven: 0, estimated: None };
        let alone = TurnLimits { contenders: 1, taken: 0, patience: 0 };
        let LimiterStep::Admit { requests, starts } = next(&window, limits, now, &asked, alone) else {
            return;
        };
        let calls: Vec<u64> = seen.iter().take(requests).map(|call| call.number).collect();
        let (grace, grace_millis) = self.grace();
        let mark = manager.unique_name();
        let claim = StartsClaim { starts, grace: grace_millis, mark: mark.clone() };
        let data = encoding::encode(limits, &claim, &window);
        let Ok(queue) = limiter_queue(manager, self.key.path(), None, &self.line.data()) else { return };
        let counts = limits.window.saturating_add(grace_millis);
        // Also if the create has no answer.
        self.counts_for(counts);
        let asked_at = manager.now();
        let creating = queue.create_directory(&data, Deadline::never());
        let Some(created) = self.within(manager, Phase::Connecting, creating).await else { return };
        match created {
            Ok(Some(sent)) => {
                let observed = manager.now();
                self.round_trip = Some(observed.since(sent));
                self.counts_for(counts);
                self.line.admit(&calls, RecordedStarts { sent, grace }, observed);
                // Of the times only their difference counts.
                window.add(WindowRecord { at: 0, starts, grace: grace_millis });
                self.turn_down(manager, &window, limit, 0);
            }
            Err(error) if error.outcome_unknown() => {
                // The next read shows it, if no other process writes before. If not, the starts are used up.
                self.may_be_late(manager);
                let (admitted, room_at) = (RecordedStarts { sent: asked_at, grace }, i64::MIN);
                self.in_doubt.push(CallBatch { calls, mark, admitted, room_at, version: NO_VERSION });
            }
            // Another process has made the node, or nothing was written.
            Ok(None) | Err(_) => self.has_written = false,
        }
    }
}
