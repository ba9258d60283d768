use std::collections::VecDeque;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::fault::Gate;

/// From this many unsent frames on, nothing more is read from the client.
const FULL: usize = 4096;

/// From this many unsent frames on, the client is given up: events have piled up that it does not take.
const OVERFLOW: usize = 1 << 18;

/// A frame on its way out, and what it waits for.
#[derive(Debug)]
pub(super) struct Parcel {
    pub(super) frame: Bytes,
    pub(super) gate: Option<Gate>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// What is queued is still sent, then the connection is closed.
    Finishing,
    /// Nothing more is sent.
    Cut,
}

/// The frames that wait to be sent to one client.
///
/// Frames are put in under the lock of the machine, so they leave in the order in which the machine spoke.
#[derive(Debug)]
pub(super) struct Outbox {
    queue: Mutex<(VecDeque<Parcel>, State)>,
    changed: Notify,
}

impl Outbox {
    pub(super) fn new() -> Self {
        Self { queue: Mutex::new((VecDeque::new(), State::Open)), changed: Notify::new() }
    }

    pub(super) fn push(&self, parcel: Parcel) {
        let mut queue = self.queue.lock();
        if queue.1 == State::Open {
            queue.0.push_back(parcel);
        }
        if queue.0.len() > OVERFLOW {
            *queue = (VecDeque::new(), State::Cut);
        }
        drop(queue);
        self.changed.notify_waiters();
    }

    /// Sends what is queued, then closes the connection.
    pub(super) fn finish(&self) {
        let mut queue = self.queue.lock();
        if queue.1 == State::Open {
            queue.1 = State::Finishing;
        }
        drop(queue);
        self.changed.notify_waiters();
    }

    /// Closes the connection without sending what is queued.
    pub(super) fn cut(&self) {
        *self.queue.lock() = (VecDeque::new(), State::Cut);
        self.changed.notify_waiters();
    }

    /// The next frame. `None` when the connection is to be closed.
    pub(super) async fn next(&self) -> Option<Parcel> {
        self.wait(|queue, state| match queue.pop_front() {
            Some(parcel) => Some(Some(parcel)),
            None => (state != State::Open).then_some(None),
        })
        .await
    }

    /// The next frame, if it is there and waits for nothing.
    pub(super) fn next_ready(&self) -> Option<Parcel> {
        let mut queue = self.queue.lock();
        queue.0.pop_front_if(|parcel| parcel.gate.is_none())
    }

    /// Waits until there is room for more replies, or the connection is to be closed.
    pub(super) async fn room(&self) {
        self.wait(|queue, state| (queue.len() < FULL || state != State::Open).then_some(())).await;
    }

    /// Waits until the connection is to be closed.
    pub(super) async fn closing(&self) {
        self.wait(|_, state| (state != State::Open).then_some(())).await;
    }

    /// Waits until nothing more is to be sent at all.
    pub(super) async fn cut_off(&self) {
        self.wait(|_, state| (state == State::Cut).then_some(())).await;
    }

    pub(super) fn is_open(&self) -> bool {
        self.queue.lock().1 == State::Open
    }

    /// Tells those who wait for room that frames were taken out.
    pub(super) fn taken(&self) {
        self.changed.notify_waiters();
    }

    async fn wait<T>(&self, mut look: impl FnMut(&mut VecDeque<Parcel>, State) -> Option<T>) -> T {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Armed before looking, so that no change in between is missed.
            changed.as_mut().enable();
            {
                let (queue, state) = &mut *self.queue.lock();
                if let Some(found) = look(queue, *state) {
                    return found;
                }
            }
            changed.await;
        }
    }
}
