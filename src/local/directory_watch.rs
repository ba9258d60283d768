use futures::FutureExt;

use super::decide::LocalQueue;
use crate::session::{NodeWatch, Session};
use crate::wire::{Reply, Stat};

/// A watch on the directory of a local queue. A directory that was created again counts its sequence numbers
/// from 0.
#[derive(Default)]
pub(super) enum DirectoryWatch {
    #[default]
    None,
    Requested(Reply<(Vec<u8>, Stat, NodeWatch)>),
    Set(NodeWatch),
}

impl DirectoryWatch {
    /// Whether a request for a watch has no reply yet.
    pub(super) fn is_in_flight(&self) -> bool {
        matches!(self, Self::Requested(_))
    }

    /// Sends the request. Returns `false` if the watch budget has no room, or if the reply to an earlier
    /// request is pending: if that reply were dropped, its watch would stay on the server.
    pub(super) fn request(&mut self, session: &Session, directory: &str) -> bool {
        if self.is_in_flight() {
            return false;
        }
        let Some(room) = session.watch_budget().reserve_spare(directory) else {
            return false;
        };
        *self = Self::Requested(session.watch_data(directory, room));
        true
    }

    /// Reports the state of the watch to the queue.
    pub(super) fn poll<P: Clone>(&mut self, queue: &mut LocalQueue<P>) {
        *self = match std::mem::take(self) {
            Self::Requested(mut reply) => match (&mut reply).now_or_never() {
                None => Self::Requested(reply),
                Some(Ok((_, _, watch))) => {
                    queue.directory_watch_set();
                    Self::Set(watch)
                }
                Some(Err(_)) => {
                    queue.directory_watch_ended();
                    Self::None
                }
            },
            other => other,
        };
        let has_fired = match self {
            Self::Set(watch) => watch.now_or_never().is_some(),
            Self::None | Self::Requested(_) => false,
        };
        if has_fired {
            queue.directory_watch_ended();
            *self = Self::None;
        }
    }
}
