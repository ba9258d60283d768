//! The wait in line, behind a node of this session: the one in front tells in memory.

use std::sync::Arc;
use std::time::Duration;

use tracing::{debug, info};

use super::interruption::{Interruption, time_over};
use super::line::Line;
use super::name::{Kind, NodeName};
use super::place::{Judged, Place};
use super::view::View;
use crate::clock::BootInstant;
use crate::deadline::Deadline;
use crate::error::{Error, LossReason, Phase};
use crate::identity;
use crate::session::{OwnNode, SharedWatch, Turn};

/// A wait that takes this long is told to whoever reads the log, and told again.
pub(super) const LONG_WAIT: Duration = Duration::from_secs(30);

impl Place {
    /// Waits until something in front, or our own node, changes.
    pub(super) async fn wait_for_change(
        &mut self,
        line: &Line,
        deadline: Deadline,
    ) -> Result<(), Interruption> {
        if self.entry.0.is_told_head() {
            self.state = Judged::Held;
        }
        let Judged::Waiting(view) = &self.state else {
            return Ok(());
        };
        match self.of_ours(view.nearest()) {
            Some(front) => self.wait_behind(&front, deadline).await,
            // Boxed: of the waiters of one process only the head of each run has to watch.
            None => Box::pin(self.wait_by_watch(line, deadline)).await,
        }
    }

    /// The node of this name, if it is ours and its end is told in this process.
    fn of_ours(&self, nearest: &NodeName) -> Option<Arc<OwnNode>> {
        let position = self.entry.0.position().filter(|_| nearest.is_ordered_by_number())?;
        let node = self.session().own_node_at(&position.directory, nearest.sequence())?;
        let is_it = node.name() == nearest.as_str();
        (is_it && node.end().is_none()).then_some(node)
    }

    /// Waits for a node of this session: nobody needs to ask the server when it goes.
    async fn wait_behind(&mut self, front: &Arc<OwnNode>, deadline: Deadline) -> Result<(), Interruption> {
        let me = Arc::clone(&self.entry.0);
        match front.follow(&me) {
            Ok(()) => {
                let who = || identity::shown(front.data());
                debug!(
                    path = me.path(),
                    behind = front.name(),
                    who = who(),
                    ahead = me.ahead(),
                    "waiting in line"
                );
            }
            // Its delete was sent without a check of this node, be it as that of the head: a list tells.
            Err(_) => {
                self.look_for_ours();
                return Ok(());
            }
        }
        let session = self.session().clone();
        // Who does not wait for long is told by the one in front.
        let mut own_watch_due = Some(self.own_watch_due());
        let (mut my_watch, mut front_watch) = (None, None);
        loop {
            let asked_on = session.connection();
            // One timer for both: what is due, and the deadline.
            let limit = deadline.or_after(own_watch_due.map_or(LONG_WAIT, |due| due.since(session.now())));
            let told = tokio::select! {
                biased;
                // The end of the session is the node's end, too.
                told = me.turn() => Some(told),
                // What was written, and is there, is watched again.
                () = fired(&mut my_watch) => {
                    my_watch = None;
                    own_watch_due = Some(session.now());
                    continue;
                }
                () = fired(&mut front_watch) => {
                    front_watch = None;
                    if session.look_at_place(front) {
                        own_watch_due = Some(session.now());
                    }
                    continue;
                }
                () = session.reconnected(asked_on) => {
                    me.forget_watch();
                    own_watch_due = Some(session.now());
                    None
                }
                () = limit.passed() => {
                    if deadline.has_passed() {
                        return Err(still_behind(front, &me, deadline).into());
                    }
                    if own_watch_due.take().is_none() {
                        let (who, waited) = (identity::shown(front.data()), deadline.waited());
                        info!(path = me.path(), behind = front.name(), who, ?waited, "still waiting in line");
                    }
                    None
                }
            };
            match told {
                Some(Ok(Turn::Head)) => {
                    self.state = Judged::Held;
                    return Ok(());
                }
                Some(Ok(Turn::Look)) => {
                    self.look_for_ours();
                    return Ok(());
                }
                Some(Err(_)) => {
                    return Err(match session.loss() {
                        Some(LossReason::Closed) => Error::Closed.into(),
                        Some(_) => Interruption::StartOver,
                        None => self.gone(),
                    });
                }
                None if own_watch_due.is_none() => {
                    let own_watch = self.ask_own_watch();
                    Box::pin(self.keep_own_watch(own_watch, deadline)).await?;
                    my_watch = me.watch();
                    front_watch = Box::pin(session.watch_place(front, deadline)).await;
                }
                None => {}
            }
        }
    }

    /// The one in front is gone: a list tells what is left. As long as a writer has others of this session in front, it
    /// waits for those first.
    fn look_for_ours(&mut self) {
        let position = self.entry.0.position().filter(|position| position.kind == Kind::Write);
        let front = position.and_then(|position| self.session().own_node_before(position));
        let name = front.and_then(|front| NodeName::parse(front.name()));
        self.state = name.map_or(Judged::Unknown, |name| Judged::Waiting(View::behind(name, 1, None)));
    }

    /// Who waits for long wants to know if its own node goes.
    pub(super) fn own_watch_due(&self) -> BootInstant {
        let session = self.session();
        session.now().after(session.timeout() / 40)
    }
}

/// Resolves when the watch, if there is one, has told.
async fn fired(watch: &mut Option<SharedWatch>) {
    match watch {
        Some(watch) => drop(watch.await),
        None => std::future::pending().await,
    }
}

fn still_behind(front: &OwnNode, me: &OwnNode, deadline: Deadline) -> Error {
    let (behind, who) = (front.name().to_owned(), identity::shown(front.data()));
    let directory = me.position().map_or_else(|| me.path(), |position| &position.directory);
    time_over(deadline, directory, Phase::InLine { behind, who, ahead: me.ahead() })
}
