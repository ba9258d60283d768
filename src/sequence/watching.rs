//! The wait in line, for a watch: behind a node of another session, or where not everyone waits for everyone in front.

use std::sync::Arc;

use parking_lot::Mutex;
use tracing::{debug, info};

use super::interruption::{Interruption, time_left, time_over};
use super::line::Line;
use super::name::NodeName;
use super::place::{Judged, Place};
use super::view::Next;
use super::waiting::LONG_WAIT;
use crate::backend::{Reply, Stat, Watch, WatchEvent, WireError};
use crate::deadline::Deadline;
use crate::error::{Error, LossReason, Operation, Phase, Refusal};
use crate::identity;
use crate::session::Reservation;

/// A watch that was asked for, and the room it takes.
pub(super) struct AskedWatch {
    // In a lock only so that a ticket may be shared between threads.
    reply: Mutex<Reply<(Vec<u8>, Stat, Watch)>>,
    room: Reservation,
    /// The connection it was asked on.
    connection: Option<u64>,
    path: String,
}

/// What ended a wait.
enum Woken {
    Blocker(WatchEvent),
    Myself,
    SessionOver,
    Reconnected,
    Time,
}

impl Place {
    /// Waits for a watch.
    ///
    /// Who has two or more in front waits for the last but one of them. When that goes, the last one is likely to have
    /// become the head: the line is read again, and the watch set that tells the turn, while nobody waits for it. Who has
    /// something [to look at](super::Look) when the turn comes reads the line in the same go, and waits for the nearest.
    pub(super) async fn wait_by_watch(
        &mut self,
        line: &Line,
        deadline: Deadline,
    ) -> Result<(), Interruption> {
        let Judged::Waiting(view) = &self.state else {
            return Ok(());
        };
        let (nearest, ahead) = (view.nearest().clone(), view.ahead());
        let reads_anyway = !line.looks().is_empty();
        let second = view.second().filter(|_| line.is_single_file() && !reads_anyway).cloned();
        let watched = second.as_ref().unwrap_or(&nearest);
        let tells = view.without_nearest(line.rule(), self.session().connection());
        let is_told_by_event = second.is_none() && !reads_anyway && tells == Next::Held;
        let path = line.directory().listed_child(watched.as_str());
        let ahead_of_time = self.ahead_of_time.take().filter(|asked| asked.path == path);
        let Some(mut asked) = ahead_of_time.map(|asked| *asked).or_else(|| self.ask_watch(path.clone()))
        else {
            return Box::pin(self.poll_instead(&path, line, deadline)).await;
        };
        let own_watch = if is_told_by_event { self.ask_own_watch() } else { None };
        let answer = self.session().clone().answer(asked.reply.get_mut(), deadline).await;
        Box::pin(self.keep_own_watch(own_watch, deadline)).await?;
        let (who, watch) = match answer {
            Ok((data, _, watch)) => (identity::shown(&data), watch),
            Err(WireError::Refused(Refusal::NoNode)) => {
                return Box::pin(self.went(&nearest, second.is_some(), line, deadline)).await;
            }
            // Without an answer there is no watch either: judge anew.
            Err(error) => {
                return Box::pin(self.look_again_after(&error, Operation::Read, &path, deadline)).await;
            }
        };
        debug!(path = self.entry.0.path(), behind = %watched, who, ahead, "waiting in line");
        let AskedWatch { room: _room, connection, .. } = asked;
        match self.sleep(watched, &who, watch, connection, deadline).await? {
            // Server order delivers the end of our own node first, if it came first.
            _ if self.entry.0.check().is_err() => Err(self.gone()),
            Woken::Blocker(WatchEvent::Deleted) => {
                Box::pin(self.went(&nearest, second.is_some(), line, deadline)).await
            }
            Woken::Blocker(_) => {
                self.state = Judged::Unknown;
                Ok(())
            }
            // The client sets its watches again by itself, but says nothing when the server refuses that.
            Woken::Reconnected => {
                self.entry.0.forget_watch();
                Ok(())
            }
            Woken::Myself => Err(self.gone()),
            Woken::SessionOver if self.session().loss() == Some(LossReason::Closed) => {
                Err(Error::Closed.into())
            }
            Woken::SessionOver => Err(Interruption::StartOver),
            Woken::Time => {
                let phase = Phase::InLine { behind: watched.to_string(), who, ahead };
                Err(time_over(deadline, line.directory().as_str(), phase).into())
            }
        }
    }

    /// Waits for the node that `watch` watches. Who waits for long wants to know if its own node goes.
    async fn sleep(
        &mut self,
        behind: &NodeName,
        who: &str,
        mut watch: Watch,
        asked_on: Option<u64>,
        deadline: Deadline,
    ) -> Result<Woken, Interruption> {
        let session = self.session().clone();
        let me = Arc::clone(&self.entry.0);
        let mut reconnected = std::pin::pin!(session.reconnected(asked_on));
        let mut own_watch_due = (!me.has_watch()).then(|| self.own_watch_due());
        loop {
            // One timer for both: what is due, and the deadline.
            let limit = deadline.or_after(own_watch_due.map_or(LONG_WAIT, |due| due.since(session.now())));
            tokio::select! {
                biased;
                // The end of the session is the node's end, too.
                _ = me.lost() => {
                    return Ok(if session.loss().is_some() { Woken::SessionOver } else { Woken::Myself });
                }
                event = &mut watch => return Ok(Woken::Blocker(event)),
                () = &mut reconnected => return Ok(Woken::Reconnected),
                () = limit.passed() => {
                    if deadline.has_passed() {
                        return Ok(Woken::Time);
                    }
                    if own_watch_due.take().is_some() {
                        let own_watch = self.ask_own_watch();
                        Box::pin(self.keep_own_watch(own_watch, deadline)).await?;
                    } else {
                        let waited = deadline.waited();
                        info!(path = me.path(), %behind, who, ?waited, "still waiting in line");
                    }
                }
            }
        }
    }

    /// The node that was waited for is gone: the nearest blocker, or the one before it.
    async fn went(
        &mut self,
        nearest: &NodeName,
        is_second: bool,
        line: &Line,
        deadline: Deadline,
    ) -> Result<(), Interruption> {
        if is_second {
            return self.come_near(nearest, line, deadline).await;
        }
        let can_see_own_node = self.entry.0.has_watch();
        let connection = self.session().connection();
        let Judged::Waiting(view) = &self.state else {
            return Ok(());
        };
        self.state = match view.without_nearest(line.rule(), connection) {
            Next::Held if can_see_own_node => Judged::Held,
            Next::Held | Next::List => Judged::Unknown,
        };
        Ok(())
    }

    /// Only the nearest is likely to be left: reads the line, and asks in the same go for the watches with which its
    /// going grants without a read.
    async fn come_near(
        &mut self,
        nearest: &NodeName,
        line: &Line,
        deadline: Deadline,
    ) -> Result<(), Interruption> {
        let session = self.session().clone();
        let (directory, connection) = (line.directory(), session.connection());
        let mut list = session.read(|wire| wire.children(directory.as_str()));
        let asked = self.ask_watch(directory.listed_child(nearest.as_str()));
        let own_watch = self.ask_own_watch();
        let listed = session.answer(&mut list, deadline).await;
        Box::pin(self.keep_own_watch(own_watch, deadline)).await?;
        self.state = Judged::Unknown;
        match listed {
            Ok(children) => {
                self.judge(&children, connection, line, deadline).await?;
                self.ahead_of_time = asked.map(Box::new);
                Ok(())
            }
            Err(WireError::Refused(Refusal::NoNode)) => Err(Interruption::StartOver),
            Err(error) => self.look_again_after(&error, Operation::List, directory.as_str(), deadline).await,
        }
    }

    /// No room for another watch: looks at the blocker now and then, and reads the line only once it is gone.
    async fn poll_instead(
        &mut self,
        blocker: &str,
        line: &Line,
        deadline: Deadline,
    ) -> Result<(), Interruption> {
        let mut wait = self.session().timeout() / 40;
        loop {
            tokio::select! {
                biased;
                () = tokio::time::sleep(wait) => {}
                _ = self.entry.0.lost() => return Err(Interruption::StartOver),
                () = deadline.passed() => {}
            }
            time_left(deadline, line.directory().as_str(), Phase::Answer)?;
            let mut reply = self.session().read(|wire| wire.exists(blocker));
            match self.session().answer(&mut reply, deadline).await {
                Ok(Some(_)) => wait = (wait * 2).min(self.session().timeout() / 4),
                Ok(None) => {
                    self.state = Judged::Unknown;
                    return Ok(());
                }
                Err(error) => return self.look_again_after(&error, Operation::Read, blocker, deadline).await,
            }
        }
    }

    fn ask_watch(&self, path: String) -> Option<AskedWatch> {
        let session = self.session();
        let room = session.watch_budget().reserve(&path)?;
        let connection = session.connection();
        let reply = Mutex::new(session.read(|wire| wire.watch_data(&path)));
        Some(AskedWatch { reply, room, connection, path })
    }

    /// Asks for a watch on our own node, unless there is one.
    pub(super) fn ask_own_watch(&self) -> Option<AskedWatch> {
        let (node, session) = (&self.entry.0, self.session());
        if node.has_watch() {
            return None;
        }
        let path = node.path().to_owned();
        let room = session.watch_budget().reserve_spare(&path)?;
        let connection = session.connection();
        let reply = Mutex::new(session.read(|wire| wire.watch_data(&path)));
        Some(AskedWatch { reply, room, connection, path })
    }

    pub(super) async fn keep_own_watch(
        &mut self,
        asked: Option<AskedWatch>,
        deadline: Deadline,
    ) -> Result<(), Interruption> {
        let Some(AskedWatch { mut reply, room, .. }) = asked else {
            return Ok(());
        };
        match self.session().answer(reply.get_mut(), deadline).await {
            Ok((_, _, watch)) => {
                self.entry.0.set_watch(watch, room);
                Ok(())
            }
            Err(WireError::Refused(Refusal::NoNode)) => Err(self.gone()),
            // Without it, no grant without a list.
            Err(_) => Ok(()),
        }
    }
}
