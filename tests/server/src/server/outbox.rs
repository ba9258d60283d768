use std::collections::VecDeque;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::fault::Gate;

/// From this many unsent bytes on, nothing more is read from the client.
const FULL: usize = 1 << 20;

/// From this many unsent bytes on, the client is given up: events have piled up that it does not take.
const OVERFLOW: usize = 64 << 20;

/// The memory of a frame besides its bytes.
const OVERHEAD: usize = 128;

/// A frame to send, and the gate that it waits for.
#[derive(Debug)]
pub(super) struct Parcel {
    pub(super) frame: Bytes,
    pub(super) gate: Option<Gate>,
}

impl Parcel {
    fn weight(&self) -> usize {
        self.frame.len() + OVERHEAD
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Open,
    /// Queued frames are still sent, then the connection is closed.
    Finishing,
    /// Nothing more is sent.
    Cut,
}

#[derive(Debug, Default)]
struct Queue {
    parcels: VecDeque<Parcel>,
    weight: usize,
    state: State,
    /// Whether the connection is to end with a reset instead of an orderly close.
    reset: bool,
}

impl Queue {
    fn cut(&mut self) {
        *self = Self { state: State::Cut, reset: self.reset, ..Self::default() };
    }

    fn take(&mut self, wanted: impl FnOnce(&mut Parcel) -> bool) -> Option<Parcel> {
        let parcel =
            self.parcels.front_mut().is_some_and(wanted).then(|| self.parcels.pop_front()).flatten()?;
        self.weight = self.weight.saturating_sub(parcel.weight());
        Some(parcel)
    }
}

/// The frames that wait to be sent to one client.
///
/// Frames are put in under the lock of the machine, so they leave in the order in which the machine spoke.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    queue: Mutex<Queue>,
    changed: Notify,
}

impl Outbox {
    pub(super) fn push(&self, parcel: Parcel) {
        self.change(|queue| {
            if queue.state == State::Open {
                queue.weight += parcel.weight();
                queue.parcels.push_back(parcel);
            }
            if queue.weight > OVERFLOW {
                queue.cut();
            }
        });
    }

    /// Sends what is queued, then closes the connection.
    pub(super) fn finish(&self) {
        self.change(|queue| {
            if queue.state == State::Open {
                queue.state = State::Finishing;
            }
        });
    }

    /// Closes the connection without sending what is queued.
    pub(super) fn cut(&self) {
        self.change(Queue::cut);
    }

    /// Makes the connection end with a reset, once it ends.
    pub(super) fn end_by_reset(&self) {
        self.queue.lock().reset = true;
    }

    pub(super) fn ends_by_reset(&self) -> bool {
        self.queue.lock().reset
    }

    /// The next frame. `None` when the connection is to be closed.
    pub(super) async fn next(&self) -> Option<Parcel> {
        self.wait(|queue| match queue.take(|_| true) {
            Some(parcel) => Some(Some(parcel)),
            None => (queue.state != State::Open).then_some(None),
        })
        .await
    }

    /// The next frame, if it is there and waits for nothing.
    pub(super) fn next_ready(&self) -> Option<Parcel> {
        self.queue.lock().take(|parcel| parcel.gate.is_none())
    }

    /// Waits until there is room for more replies, or the connection is to be closed.
    pub(super) async fn room(&self) {
        self.wait(|queue| (queue.weight < FULL || queue.state != State::Open).then_some(())).await;
    }

    /// Waits until the connection is to be closed.
    pub(super) async fn closing(&self) {
        self.wait(|queue| (queue.state != State::Open).then_some(())).await;
    }

    /// Waits until nothing more is to be sent at all.
    pub(super) async fn cut_off(&self) {
        self.wait(|queue| (queue.state == State::Cut).then_some(())).await;
    }

    pub(super) fn is_open(&self) -> bool {
        self.queue.lock().state == State::Open
    }

    /// Wakes the tasks that wait for room after frames were taken out.
    pub(super) fn taken(&self) {
        self.changed.notify_waiters();
    }

    fn change(&self, act: impl FnOnce(&mut Queue)) {
        act(&mut self.queue.lock());
        self.changed.notify_waiters();
    }

    async fn wait<T>(&self, mut check: impl FnMut(&mut Queue) -> Option<T>) -> T {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Armed before the check, so that no change in between is missed.
            changed.as_mut().enable();
            if let Some(found) = check(&mut self.queue.lock()) {
                return found;
            }
            changed.await;
        }
    }
}
