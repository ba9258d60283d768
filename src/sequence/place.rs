//! A node of ours in the line, and what is known of who is in front of it.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tracing::{debug, info};

use super::claim::{Standing, czxid};
use super::exchange::uncounted;
use super::interruption::{Interruption, pause, time_left, time_over};
use super::line::Line;
use super::look::Looks;
use super::name::NodeName;
use super::rule::{Rule, Verdict};
use super::view::{Next, View};
use crate::backend::{Reply, Stat, Watch, WatchEvent, WireError};
use crate::deadline::Deadline;
use crate::error::{Error, LossReason, Operation, Phase, Refusal};
use crate::identity;
use crate::session::{Approach, Before, End, OwnNode, Reservation, Session, Turn};

/// A node of ours in the line.
pub(super) struct Place {
    // Dropped in this order: struck out first, then deleted.
    pub(super) entry: Entry,
    pub(super) standing: Standing,
    pub(super) name: String,
    pub(super) czxid: Option<i64>,
    pub(super) state: Judged,
    /// What was asked to be looked at behind the list that granted the place.
    pub(super) glimpse: Option<Looks>,
    /// What the nearest blocker's node says about itself.
    who: String,
}

/// What is known of the line in front of us.
pub(super) enum Judged {
    /// Nothing; or what was known may be out of date.
    Unknown,
    Held,
    Waiting(View),
}

/// Our node in the session's books; struck out when dropped.
pub(super) struct Entry(pub(super) Arc<OwnNode>);

impl Drop for Entry {
    fn drop(&mut self) {
        self.0.session().disown(&self.0);
    }
}

/// A watch that was asked for, and the room it takes.
type AskedWatch = (Reply<(Vec<u8>, Stat, Watch)>, Reservation);

/// A wait that takes this long is told to whoever reads the log, and told again.
const LONG_WAIT: Duration = Duration::from_secs(30);

/// What ended a wait.
enum Woken {
    Blocker(WatchEvent),
    Myself,
    SessionOver,
    Closing,
    Reconnected,
    Time,
}

impl Place {
    /// `connection` made the node, if that is known.
    pub(super) fn new(
        session: &Session,
        mut standing: Standing,
        line: &Line,
        stat: Option<Stat>,
        connection: Option<u64>,
    ) -> Self {
        let name = standing.path().rsplit('/').next().unwrap_or_default().to_owned();
        debug_assert_eq!(
            line.directory().listed_child(&name),
            standing.path(),
            "a node outside its directory"
        );
        let (path, data) = (standing.path().to_owned(), Arc::clone(line.data()));
        let node = session.own(path, data, line.position(&name), connection);
        standing.known_as(&node);
        Self {
            entry: Entry(node),
            standing,
            name,
            czxid: czxid(stat.as_ref()),
            state: Judged::Unknown,
            glimpse: None,
            who: String::new(),
        }
    }

    pub(super) fn session(&self) -> &Session {
        self.entry.0.session()
    }

    pub(super) async fn list(&mut self, line: &Line, deadline: Deadline) -> Result<(), Interruption> {
        let directory = line.directory().as_str();
        let connection = self.session().connection();
        let mut reply = self.session().read(|wire| wire.children(directory));
        match self.session().answer(&mut reply, deadline).await {
            Ok(children) => self.judge(&children, connection, line, deadline).await.map(drop),
            // No directory, no node of ours.
            Err(WireError::Refused(Refusal::NoNode)) => Err(Interruption::StartOver),
            Err(error) => self.look_again_after(&error, Operation::List, directory, deadline).await,
        }
    }

    /// Judges a list that was read on `connection`; whether the list alone told. If not, more was read behind it, and
    /// what was seen between the two is older than the verdict.
    pub(super) async fn judge(
        &mut self,
        children: &[String],
        connection: Option<u64>,
        line: &Line,
        deadline: Deadline,
    ) -> Result<bool, Interruption> {
        let mut is_told_by_list = true;
        let mut verdict = line.rule().judge(children, &self.name, line.besides_names());
        if let Verdict::AskCreationOrder(contenders) = verdict {
            is_told_by_list = false;
            match self.creation_order(contenders, line, deadline).await? {
                Some(ordered) => verdict = ordered,
                None => return Ok(false),
            }
        }
        self.state = match verdict {
            Verdict::Held => Judged::Held,
            Verdict::WaitFor(lower) => {
                self.entry.0.set_ahead(lower.len());
                Judged::Waiting(View::new(lower, connection))
            }
            // Whatever stands of ours is deleted: a list alone does not prove that nothing does.
            Verdict::Gone | Verdict::AskCreationOrder(_) => return Err(Interruption::StartOver),
            Verdict::Uncounted => return Err(uncounted(line.directory().as_str()).into()),
            Verdict::Mixed(node) => {
                return Err(Error::MixedKinds {
                    path: line.directory().to_string(),
                    child: node.to_string(),
                }
                .into());
            }
        };
        Ok(is_told_by_list)
    }

    /// Where numbers do not tell who came first, the creation zxids do; `None` when they could not be read.
    async fn creation_order(
        &mut self,
        contenders: Vec<NodeName>,
        line: &Line,
        deadline: Deadline,
    ) -> Result<Option<Verdict>, Interruption> {
        let mine = self.token_zxid(deadline, line.directory().as_str()).await?;
        let session = self.session().clone();
        let stats = contenders.into_iter().map(|node| {
            let path = line.directory().listed_child(node.as_str());
            let mut reply = session.read(|wire| wire.exists(&path));
            let session = session.clone();
            async move { (session.answer(&mut reply, deadline).await, node) }
        });
        let mut ordered = Vec::new();
        for (stat, node) in join_all(stats).await {
            match stat {
                Ok(Some(stat)) => ordered.push((stat.czxid, node)),
                Ok(None) => {}
                Err(error) => {
                    self.look_again_after(&error, Operation::Read, line.directory().as_str(), deadline)
                        .await?;
                    return Ok(None);
                }
            }
        }
        Ok(Some(Rule::judge_by_creation(ordered, mine)))
    }

    /// Who is in front, by the number that the node got; no list is needed where that tells.
    pub(super) async fn look_in_front(&mut self, approach: Option<Approach>, connection: Option<u64>) {
        let (Some(approach), Some(position)) = (approach, self.entry.0.position()) else {
            return;
        };
        self.state = match self.session().before(approach, position).await {
            Before::Nobody => Judged::Held,
            Before::Own(node) => {
                let name = node.path().rsplit('/').next().and_then(NodeName::parse);
                let hidden = node.ahead();
                self.entry.0.set_ahead(hidden + 1);
                name.map_or(Judged::Unknown, |name| {
                    Judged::Waiting(View::new(vec![name], connection).with_hidden(hidden))
                })
            }
            Before::Unknown => Judged::Unknown,
        };
    }

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
        let Some(nearest) = view.nearest().cloned() else {
            self.state = Judged::Unknown;
            return Ok(());
        };
        let ahead = view.ahead();
        if let Some(front) = self.of_ours(&nearest) {
            return self.wait_behind(&front, &nearest, ahead, deadline).await;
        }
        let blocker = line.directory().listed_child(nearest.as_str());
        let session = self.session().clone();
        let Some(room) = session.watch_budget().reserve(&blocker) else {
            return self.poll_instead(&blocker, line, deadline).await;
        };
        let asked_on = session.connection();
        let mut blocker_reply = session.read(|wire| wire.watch_data(&blocker));
        let own_watch = self.ask_own_watch();
        let answer = session.answer(&mut blocker_reply, deadline).await;
        self.keep_own_watch(own_watch, deadline).await?;
        let watch = match answer {
            Ok((data, _, watch)) => {
                self.who = identity::shown(&data);
                watch
            }
            Err(WireError::Refused(Refusal::NoNode)) => return self.blocker_gone(&nearest, line),
            // Without an answer there is no watch either: judge anew.
            Err(error) => return self.look_again_after(&error, Operation::Read, &blocker, deadline).await,
        };
        debug!(path = self.entry.0.path(), behind = %nearest, who = self.who, ahead, "waiting in line");
        let woken = self.sleep(&nearest, watch, room, asked_on, deadline).await;
        match woken {
            // Server order delivers the end of our own node first, if it came first.
            _ if self.entry.0.check().is_err() => Err(self.gone()),
            Woken::Blocker(WatchEvent::Deleted) => self.blocker_gone(&nearest, line),
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
            Woken::Closing => Err(Error::Closed.into()),
            Woken::SessionOver if session.loss() == Some(LossReason::Closed) => Err(Error::Closed.into()),
            Woken::SessionOver => Err(Interruption::StartOver),
            Woken::Time => {
                let phase = Phase::InLine { behind: nearest.to_string(), who: self.who.clone(), ahead };
                Err(time_over(deadline, line.directory().as_str(), phase).into())
            }
        }
    }

    async fn sleep(
        &self,
        behind: &NodeName,
        mut watch: Watch,
        _room: Reservation,
        asked_on: Option<u64>,
        deadline: Deadline,
    ) -> Woken {
        let session = self.session();
        let mut reconnected = std::pin::pin!(session.reconnected(asked_on));
        loop {
            tokio::select! {
                biased;
                _ = self.entry.0.lost() => {
                    return if session.loss().is_some() { Woken::SessionOver } else { Woken::Myself };
                }
                _ = session.ended() => return Woken::SessionOver,
                () = session.settings().draining.cancelled() => return Woken::Closing,
                event = &mut watch => return Woken::Blocker(event),
                () = deadline.passed() => return Woken::Time,
                () = &mut reconnected => return Woken::Reconnected,
                () = tokio::time::sleep(LONG_WAIT) => {
                    let waited = deadline.waited();
                    info!(path = self.entry.0.path(), %behind, who = self.who, ?waited, "still waiting in line");
                }
            }
        }
    }

    /// The node of this name, if it is ours and its end is told in this process.
    fn of_ours(&self, nearest: &NodeName) -> Option<Arc<OwnNode>> {
        let position = self.entry.0.position().filter(|_| nearest.is_ordered_by_number())?;
        let node = self.session().own_node_at(&position.directory, nearest.sequence())?;
        let is_it = node.path().rsplit('/').next() == Some(nearest.as_str());
        (is_it && node.end().is_none()).then_some(node)
    }

    /// Waits for a node of this session: nobody needs to ask the server when it goes.
    async fn wait_behind(
        &mut self,
        front: &OwnNode,
        nearest: &NodeName,
        ahead: usize,
        deadline: Deadline,
    ) -> Result<(), Interruption> {
        self.who = identity::shown(front.data());
        let me = Arc::clone(&self.entry.0);
        match front.follow(&me) {
            Ok(()) => debug!(path = me.path(), behind = %nearest, who = self.who, ahead, "waiting in line"),
            Err(End::AsHead) => {
                self.state = Judged::Held;
                return Ok(());
            }
            Err(End::Left) => {
                self.state = Judged::Unknown;
                return Ok(());
            }
        }
        let session = self.session().clone();
        // Who waits for long wants to know if its own node goes. Who does not is told by the one in front.
        let mut own_watch_due = Some(session.now().after(session.timeout() / 40));
        loop {
            let asked_on = session.connection();
            let until_due = own_watch_due.map(|due| due.since(session.now()));
            let woken = tokio::select! {
                biased;
                _ = me.lost() => match session.loss() {
                    Some(LossReason::Closed) => return Err(Error::Closed.into()),
                    Some(_) => return Err(Interruption::StartOver),
                    None => return Err(self.gone()),
                },
                _ = session.ended() => continue,
                turn = me.turn() => Some(turn),
                () = deadline.passed() => {
                    let phase = Phase::InLine { behind: nearest.to_string(), who: self.who.clone(), ahead };
                    let directory = me.position().map_or_else(|| me.path(), |position| &position.directory);
                    return Err(time_over(deadline, directory, phase).into());
                }
                () = session.reconnected(asked_on) => {
                    me.forget_watch();
                    own_watch_due = Some(session.now());
                    None
                }
                () = tokio::time::sleep(until_due.unwrap_or(LONG_WAIT)) => {
                    if own_watch_due.take().is_none() {
                        let waited = deadline.waited();
                        info!(path = me.path(), behind = %nearest, who = self.who, ?waited, "still waiting in line");
                    }
                    None
                }
            };
            match woken {
                Some(Turn::Head) => {
                    self.state = Judged::Held;
                    return Ok(());
                }
                Some(Turn::Look) => {
                    self.state = Judged::Unknown;
                    return Ok(());
                }
                None if own_watch_due.is_none() => {
                    let own_watch = self.ask_own_watch();
                    self.keep_own_watch(own_watch, deadline).await?;
                }
                None => {}
            }
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
                () = self.session().settings().draining.cancelled() => return Err(Error::Closed.into()),
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

    /// Asks for a watch on our own node, sent right behind the one on the blocker, unless there is one.
    fn ask_own_watch(&self) -> Option<AskedWatch> {
        let path = self.entry.0.path();
        if self.entry.0.has_watch() {
            return None;
        }
        let room = self.session().watch_budget().reserve_spare(path)?;
        Some((self.session().read(|wire| wire.watch_data(path)), room))
    }

    async fn keep_own_watch(
        &mut self,
        asked: Option<AskedWatch>,
        deadline: Deadline,
    ) -> Result<(), Interruption> {
        let Some((mut reply, room)) = asked else {
            return Ok(());
        };
        match self.session().answer(&mut reply, deadline).await {
            Ok((_, _, watch)) => {
                self.entry.0.set_watch(watch, room);
                Ok(())
            }
            Err(WireError::Refused(Refusal::NoNode)) => Err(self.gone()),
            // Without it, no grant without a list.
            Err(_) => Ok(()),
        }
    }

    fn blocker_gone(&mut self, blocker: &NodeName, line: &Line) -> Result<(), Interruption> {
        let can_see_own_node = self.entry.0.has_watch();
        let connection = self.session().connection();
        let Judged::Waiting(view) = &mut self.state else {
            return Ok(());
        };
        self.state = match view.gone(blocker.as_str(), line.rule(), connection) {
            Next::Held if can_see_own_node => Judged::Held,
            Next::Held | Next::List => Judged::Unknown,
        };
        Ok(())
    }

    /// Our node is not there any more: said by the node itself, not by a list, which may be an old one.
    fn gone(&mut self) -> Interruption {
        self.standing.is_gone();
        Interruption::StartOver
    }

    pub(super) async fn token_zxid(
        &mut self,
        deadline: Deadline,
        directory: &str,
    ) -> Result<i64, Interruption> {
        loop {
            if let Some(czxid) = self.czxid {
                return Ok(czxid);
            }
            let path = self.entry.0.path().to_owned();
            let mut reply = self.session().read(|wire| wire.exists(&path));
            match self.session().answer(&mut reply, deadline).await {
                Ok(Some(stat)) => self.czxid = czxid(Some(&stat)),
                Ok(None) => return Err(self.gone()),
                Err(error) => self.look_again_after(&error, Operation::Read, directory, deadline).await?,
            }
        }
    }

    /// A read failed: says no, starts over, or sees to it that the line is looked at again.
    async fn look_again_after(
        &mut self,
        error: &WireError,
        operation: Operation,
        path: &str,
        deadline: Deadline,
    ) -> Result<(), Interruption> {
        match error {
            WireError::SessionEnded(LossReason::Closed) => Err(Error::Closed.into()),
            WireError::SessionEnded(_) => Err(Interruption::StartOver),
            WireError::Refused(refusal) if refusal.is_transient() => {
                self.state = Judged::Unknown;
                pause(self.session(), deadline).await;
                time_left(deadline, path, Phase::Answer)
            }
            WireError::Refused(_) => Err(Error::of_wire(operation, path, error, deadline).into()),
            _ => {
                debug!(path, %error, "no answer; looking again");
                self.state = Judged::Unknown;
                pause(self.session(), deadline).await;
                time_left(deadline, path, Phase::Answer)
            }
        }
    }
}
