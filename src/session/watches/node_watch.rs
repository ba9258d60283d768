use std::fmt::{self, Debug, Formatter};
use std::pin::Pin;
use std::task::{Context, Poll};

use super::Reservation;
use crate::wire::{Watch, WatchEvent};

/// A watch that is set, with its room in the budget. It fires once. Dropping it removes the watch.
pub(crate) struct NodeWatch {
    // Dropped first: the client removes the watch before another one gets its room.
    event: Watch,
    _room: Reservation,
}

impl NodeWatch {
    pub(crate) fn new(event: Watch, room: Reservation) -> Self {
        Self { event, _room: room }
    }
}

impl Future for NodeWatch {
    type Output = WatchEvent;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<WatchEvent> {
        self.event.as_mut().poll(context)
    }
}

impl Debug for NodeWatch {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("NodeWatch").finish_non_exhaustive()
    }
}
