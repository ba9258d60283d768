//! Watch or poll: reads that show later changes, by one-shot watches as far as the budget has room for them.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use futures::{FutureExt, TryFutureExt};

use super::handle::Session;
use super::watches::{NodeWatch, Reservation};
use crate::error::Refusal;
use crate::time::deadline::Deadline;
use crate::time::fractions;
use crate::wire::{Reply, Stat, WatchEvent, WireError};
use crate::znode::path::ZnodePath;

/// Waits for changes of what was read: for the events of watches, and for the time of the next read, if a
/// part has no watch.
#[derive(Debug)]
#[must_use]
pub(crate) struct Observation {
    session: Session,
    /// The connection that carried the reads.
    asked_on: Option<u64>,
    watches: Vec<NodeWatch>,
    /// Something that was read has no watch.
    is_incomplete: bool,
    /// The time of the next read, if a part has no watch.
    pause: Duration,
    /// The first event. A watch fires once.
    event: Option<WatchEvent>,
}

impl Observation {
    /// Of reads over a connection, each with its watch, if there was room for one.
    pub(crate) fn new(
        session: &Session,
        asked_on: Option<u64>,
        watches: impl IntoIterator<Item = Option<NodeWatch>>,
    ) -> Self {
        let (mut set, mut is_incomplete) = (Vec::new(), false);
        for watch in watches {
            is_incomplete |= watch.is_none();
            set.extend(watch);
        }
        let pause = fractions::poll_interval(session.timeout());
        Self { session: session.clone(), asked_on, watches: set, is_incomplete, pause, event: None }
    }

    /// Reads as seldom as a waiter far behind in a queue, if a part has no watch: for what is not urgent to
    /// a holder, and many may wait for.
    pub(crate) fn seldom(self) -> Self {
        Self { pause: fractions::predecessor_poll_max(self.session.timeout()), ..self }
    }

    /// Resolves when what was read has changed, or may have: read again then. Returns the event of a watch;
    /// `None` after the pause that replaces a watch, and after a reconnect.
    pub(crate) async fn changed(&mut self) -> Option<WatchEvent> {
        if self.event.is_some() {
            return self.event;
        }
        let watches = &mut self.watches;
        let fired = poll_fn(|context| {
            let fired = watches.iter_mut().find_map(|watch| match watch.poll_unpin(context) {
                Poll::Ready(event) => Some(event),
                Poll::Pending => None,
            });
            fired.map_or(Poll::Pending, Poll::Ready)
        });
        let pause = self.pause;
        tokio::select! {
            biased;
            event = fired => self.event = Some(event),
            _ = self.session.ended() => {}
            // The client sets its watches again after a reconnect, but does not report a refusal.
            () = self.session.reconnected(self.asked_on) => {}
            () = tokio::time::sleep(pause), if self.is_incomplete => {}
        }
        self.event
    }
}

impl Session {
    /// Sends a read of a node's data now, with a watch if there is room for one; the reply is awaited later.
    pub(crate) fn observe_data(
        &self,
        path: &str,
        room: Option<Reservation>,
    ) -> Reply<(Vec<u8>, Stat, Option<NodeWatch>)> {
        match room {
            Some(room) => {
                let reply = self.watch_data(path, room);
                reply.map_ok(|(data, stat, watch)| (data, stat, Some(watch))).boxed()
            }
            None => self.read(|wire| wire.data(path)).map_ok(|(data, stat)| (data, stat, None)).boxed(),
        }
    }

    /// As [`observe_data`](Self::observe_data), for the names of a node's children.
    pub(crate) fn observe_children(
        &self,
        path: &str,
        room: Option<Reservation>,
    ) -> Reply<(Vec<String>, Stat, Option<NodeWatch>)> {
        match room {
            Some(room) => {
                let reply = self.watch_children(path, room);
                reply.map_ok(|(names, stat, watch)| (names, stat, Some(watch))).boxed()
            }
            None => {
                let reply = self.read(|wire| wire.children_stat(path));
                reply.map_ok(|(names, stat)| (names, stat, None)).boxed()
            }
        }
    }

    /// Sends a read of a node's data with a watch now; the reply is awaited later.
    pub(crate) fn watch_data(&self, path: &str, room: Reservation) -> Reply<(Vec<u8>, Stat, NodeWatch)> {
        let reply = self.read(|wire| wire.watch_data(path));
        reply.map_ok(|(data, stat, event)| (data, stat, NodeWatch::new(event, room))).boxed()
    }

    /// As [`watch_data`](Self::watch_data), for the names of a node's children.
    pub(crate) fn watch_children(
        &self,
        path: &str,
        room: Reservation,
    ) -> Reply<(Vec<String>, Stat, NodeWatch)> {
        let reply = self.read(|wire| wire.watch_children(path));
        reply.map_ok(|(names, stat, event)| (names, stat, NodeWatch::new(event, room))).boxed()
    }

    /// Waits until the children of `directory` may satisfy `is_there`, by one watch on its list. While the
    /// directory does not exist, the watch is on the nearest parent that exists.
    ///
    /// It also returns after other changes of the list, and after a reconnect: read again then.
    pub(crate) async fn until_child(
        &self,
        connection: u64,
        directory: &ZnodePath,
        is_there: impl Fn(&[String]) -> bool,
    ) -> Result<(), WireError> {
        let mut watched = directory.clone();
        let mut missing: Option<String> = None;
        let watch = loop {
            let Some(room) = self.watch_budget().reserve_spare(watched.as_str()) else { break None };
            let mut reply = self.watch_children(watched.as_str(), room);
            let has_come = |names: &[String]| match &missing {
                Some(missing) => names.contains(missing),
                None => is_there(names),
            };
            match self.await_reply(&mut reply, Deadline::never()).await {
                Ok((names, ..)) if has_come(&names) => return Ok(()),
                Ok((.., watch)) => break Some(watch),
                Err(WireError::Refused(Refusal::NoNode)) => match watched.parent() {
                    Some(parent) => {
                        missing = Some(watched.name().to_owned());
                        watched = parent;
                    }
                    None => break None,
                },
                // A parent that may not be listed.
                Err(WireError::Refused(Refusal::NoAuth)) if missing.is_some() => break None,
                Err(error) => return Err(error),
            }
        };
        Observation::new(self, Some(connection), [watch]).seldom().changed().await;
        Ok(())
    }
}
