//! A watch on a line's directory: a new one of the same name would count from the beginning.

use futures::FutureExt;

use crate::session::Reservation;
use crate::wire::{Reply, Stat, Watch};

/// Whether it is watched.
#[derive(Default)]
pub(super) enum DirectoryWatch {
    #[default]
    None,
    Asked {
        reply: Reply<(Vec<u8>, Stat, Watch)>,
        room: Reservation,
        connection: u64,
    },
    Set {
        watch: Watch,
        _room: Reservation,
        connection: u64,
    },
}

impl DirectoryWatch {
    pub(super) fn take_in(&mut self) {
        *self = match std::mem::take(self) {
            Self::Asked { mut reply, room, connection } => match (&mut reply).now_or_never() {
                None => Self::Asked { reply, room, connection },
                Some(Ok((_, _, watch))) => Self::Set { watch, _room: room, connection },
                Some(Err(_)) => Self::None,
            },
            other => other,
        };
    }

    /// Whether the watch was set on this connection and has not fired. Read in place: the server sends an event before
    /// the answers to what it did later.
    pub(super) fn is_quiet(&mut self, on: u64) -> bool {
        self.take_in();
        let Self::Set { watch, connection, .. } = self else {
            return false;
        };
        if *connection == on && watch.now_or_never().is_none() {
            return true;
        }
        *self = Self::None;
        false
    }
}
