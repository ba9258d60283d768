//! The calls of this process that wait for starts, in the order of their calls.

use std::collections::VecDeque;
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;
use std::time::Duration;

use lockkeeper_core::{BootInstant, Deadline, Error};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, oneshot};

use super::ahead::{RecordedStarts, StartsAhead};

/// The calls that one worker serves. Clones of a limiter, and other limiters of the manager with the same
/// path and the same numbers, share it.
#[derive(Default)]
pub(super) struct Line {
    state: Mutex<LineState>,
    /// Notified of each call that comes or goes, for a wait that does not know of it yet.
    pub(super) changed: Notify,
    /// The same, for a request that is out.
    moved: Notify,
}

#[derive(Default)]
struct LineState {
    waiting: VecDeque<Call>,
    calls: u64,
    has_worker: bool,
    ahead: StartsAhead,
    /// The call that takes starts ahead, while it waits.
    takes_ahead: Option<u64>,
    /// The limit that was read last, of a limiter whose limit can change.
    limit: Option<u32>,
}

/// A call that waits.
struct Call {
    seen: SeenCall,
    /// For people: the data of the contender's node.
    data: Arc<[u8]>,
    /// The window was looked at since it came.
    was_seen: bool,
    /// `None` for a call that takes starts ahead.
    answer: Option<oneshot::Sender<Result<AdmitAnswer, Error>>>,
}

/// A waiting call, as the worker sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeenCall {
    pub(super) number: u64,
    pub(super) asked: u32,
    /// Whether it waits until there is room.
    pub(super) waits: bool,
    pub(super) deadline: Deadline,
}

/// The answer to a call.
#[derive(Clone, Copy, Debug)]
pub(super) enum AdmitAnswer {
    /// The starts were recorded.
    Admitted(RecordedStarts),
    /// There is no room now.
    Later { retry_after: Duration },
}

/// What a call asks for.
#[derive(Clone, Debug)]
pub(super) struct AskedStarts {
    pub(super) starts: u32,
    pub(super) waits: bool,
    pub(super) deadline: Deadline,
    pub(super) data: Arc<[u8]>,
}

/// What becomes of a call at first.
pub(super) enum CallEntry {
    /// The starts were taken ahead.
    Ready(RecordedStarts),
    /// It waits.
    InLine(InLine),
}

/// A call that waits in the line. Its drop takes it out.
pub(super) struct InLine {
    line: Arc<Line>,
    number: u64,
    answer: oneshot::Receiver<Result<AdmitAnswer, Error>>,
}

impl Line {
    /// Enters a call, for which up to `ahead` starts are kept ready, and taken until `limit`. The second
    /// result says whether a worker has to be started.
    pub(super) fn enter(
        self: &Arc<Self>,
        asked: AskedStarts,
        ahead: u32,
        now: BootInstant,
        limit: Deadline,
    ) -> (CallEntry, bool) {
        let mut state = self.state.lock();
        // A call that came before waits for more than there are.
        let is_first = state.waiting.iter().all(|call| call.answer.is_none());
        let ready = if ahead > 0 && is_first { state.ahead.take(asked.starts, now) } else { None };
        let missing = if ahead > 0 { ahead.saturating_sub(state.ahead.ready(now)) } else { 0 };
        let data = Arc::clone(&asked.data);
        let entered = match ready {
            Some(admitted) => CallEntry::Ready(admitted),
            None => {
                let (answer, receiver) = oneshot::channel();
                let number = state.push(asked, Some(answer));
                CallEntry::InLine(InLine { line: Arc::clone(self), number, answer: receiver })
            }
        };
        // Half of them at once cost no more than one.
        if missing > ahead / 2 && state.takes_ahead.is_none() {
            let asked = AskedStarts { starts: missing, waits: false, deadline: limit, data };
            state.takes_ahead = Some(state.push(asked, None));
        }
        let needs_worker = !state.waiting.is_empty() && !std::mem::replace(&mut state.has_worker, true);
        self.notify(state);
        (entered, needs_worker)
    }

    /// Tells the worker of a change.
    fn notify(&self, state: MutexGuard<'_, LineState>) {
        drop(state);
        self.changed.notify_one();
        self.moved.notify_one();
    }

    /// Resolves when a call comes or goes.
    pub(super) async fn moved(&self) {
        self.moved.notified().await;
    }

    /// Resolves when a call waits.
    pub(super) async fn until_called(&self) {
        while self.is_empty() {
            self.changed.notified().await;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.state.lock().waiting.is_empty()
    }

    /// The calls that wait, in their order.
    pub(super) fn seen(&self) -> Vec<SeenCall> {
        self.state.lock().waiting.iter().map(|call| call.seen).collect()
    }

    /// Whether a call came since the last look that may end by it: one that does not wait as long as it
    /// takes.
    pub(super) fn note_new_calls(&self) -> bool {
        let mut state = self.state.lock();
        let mut came = false;
        for call in &mut state.waiting {
            let is_new = !std::mem::replace(&mut call.was_seen, true);
            came |= is_new && !(call.seen.waits && call.seen.deadline.left().is_none());
        }
        came
    }

    /// The limit is this now.
    pub(super) fn set_limit(&self, limit: u32) {
        self.state.lock().limit = Some(limit);
    }

    /// The limit that was read last, of a limiter whose limit can change.
    pub(super) fn limit(&self) -> Option<u32> {
        self.state.lock().limit
    }

    /// The data of the first call.
    pub(super) fn data(&self) -> Arc<[u8]> {
        self.state.lock().waiting.front().map(|call| Arc::clone(&call.data)).unwrap_or_default()
    }

    /// The earliest deadline of the calls.
    pub(super) fn deadline(&self) -> Deadline {
        let state = self.state.lock();
        state.waiting.iter().fold(Deadline::never(), |earliest, call| earliest.earlier(call.seen.deadline))
    }

    /// Admits the calls of these numbers that still wait, and then, in their order, those for which starts
    /// were taken ahead.
    pub(super) fn admit(&self, numbers: &[u64], admitted: RecordedStarts, now: BootInstant) {
        self.end(|call| {
            numbers.binary_search(&call.number).is_ok().then_some(Ok(AdmitAnswer::Admitted(admitted)))
        });
        let mut state = self.state.lock();
        while let Some(call) = state.waiting.front().filter(|call| call.answer.is_some()) {
            let asked = call.seen.asked;
            let Some(ready) = state.ahead.take(asked, now) else { break };
            if let Some(to) = state.waiting.pop_front().and_then(|call| call.answer) {
                // A caller that has gone does not read its answer.
                let _ = to.send(Ok(AdmitAnswer::Admitted(ready)));
            }
        }
    }

    /// Ends the calls to which `ended` gives an answer.
    pub(super) fn end(&self, mut ended: impl FnMut(SeenCall) -> Option<Result<AdmitAnswer, Error>>) {
        let mut state = self.state.lock();
        let mut answered = Vec::new();
        let mut kept = VecDeque::with_capacity(state.waiting.len());
        for call in std::mem::take(&mut state.waiting) {
            let Some(answer) = ended(call.seen) else {
                kept.push_back(call);
                continue;
            };
            match (call.answer, answer) {
                (Some(to), answer) => answered.push((to, answer)),
                (None, answer) => {
                    state.takes_ahead = None;
                    if let Ok(AdmitAnswer::Admitted(admitted)) = answer {
                        state.ahead.add(call.seen.asked, admitted);
                    }
                }
            }
        }
        state.waiting = kept;
        drop(state);
        for (to, answer) in answered {
            // A caller that has gone does not read its answer.
            let _ = to.send(answer);
        }
    }

    /// The worker ends, if no call waits. A later call starts another one.
    pub(super) fn end_worker(&self) -> bool {
        let mut state = self.state.lock();
        let is_over = state.waiting.is_empty();
        state.has_worker &= !is_over;
        is_over
    }

    /// The worker was dropped: its runtime or its manager has ended.
    pub(super) fn abandon(&self) {
        let mut state = self.state.lock();
        (state.has_worker, state.takes_ahead) = (false, None);
        let left = std::mem::take(&mut state.waiting);
        drop(state);
        drop(left);
    }
}

impl LineState {
    fn push(
        &mut self,
        asked: AskedStarts,
        answer: Option<oneshot::Sender<Result<AdmitAnswer, Error>>>,
    ) -> u64 {
        let AskedStarts { starts, waits, deadline, data } = asked;
        self.calls += 1;
        let seen = SeenCall { number: self.calls, asked: starts, waits, deadline };
        self.waiting.push_back(Call { seen, data, was_seen: false, answer });
        self.calls
    }
}

impl InLine {
    /// The answer. `None` if the worker was dropped.
    pub(super) async fn answer(mut self) -> Option<Result<AdmitAnswer, Error>> {
        (&mut self.answer).await.ok()
    }
}

impl Drop for InLine {
    fn drop(&mut self) {
        let mut state = self.line.state.lock();
        let place = state.waiting.binary_search_by_key(&self.number, |call| call.seen.number);
        if let Some(left) = place.ok().and_then(|place| state.waiting.remove(place)) {
            self.line.notify(state);
            drop(left);
        }
    }
}

impl Debug for Line {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Line").finish_non_exhaustive()
    }
}
