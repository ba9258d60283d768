use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use futures::future::join_all;
use tracing::{debug, warn};

use super::claim::{Claim, Standing, czxid};
use super::held::HeldNode;
use super::line::Line;
use super::name::{NodeName, Protection};
use super::rule::{Rule, Verdict};
use super::view::{Next, View};
use crate::backend::{CreateMode, Reply, Stat, Watch, WatchEvent, WireError};
use crate::deadline::Deadline;
use crate::error::{Error, LossReason, Operation, Outcome, Phase, Refusal};
use crate::identity;
use crate::janitor;
use crate::path::ZnodePath;
use crate::request_size;
use crate::session::{OwnNode, Reservation, Session};
use crate::token::FencingToken;

/// How often a directory is made again that was reaped between its making and our create.
const DIRECTORIES_MAX: usize = 8;

/// A place in a [`Line`].
///
/// Dropping it gives the place up and leaves no node behind. While it is kept, the place is kept: a wait that timed
/// out or was cancelled can be taken up again.
pub struct Ticket {
    line: Line,
    place: Option<Place>,
    /// Attempts of this ticket whose outcome could not be found out: they may still come to stand.
    ghosts: Vec<(Session, Protection)>,
}

/// A node of ours in the line.
struct Place {
    // Dropped in this order: struck out first, then deleted.
    entry: Entry,
    standing: Standing,
    name: String,
    czxid: Option<i64>,
    state: Judged,
    /// What the nearest blocker's node says about itself.
    who: String,
}

/// What is known of the line in front of us.
enum Judged {
    /// Nothing; or what was known may be out of date.
    Unknown,
    Held,
    Waiting(View),
}

/// Our node in the session's books; struck out when dropped.
pub(super) struct Entry(Arc<OwnNode>);

impl Drop for Entry {
    fn drop(&mut self) {
        self.0.session().disown(&self.0);
    }
}

/// A watch that was asked for, and the room it takes.
type AskedWatch = (Reply<(Vec<u8>, Stat, Watch)>, Reservation);

/// Why a step did not get to its end.
enum Interruption {
    /// The session is over, or the node is gone: start over at the end of the line.
    StartOver,
    /// Tell the caller.
    Fail(Error),
}

impl From<Error> for Interruption {
    fn from(error: Error) -> Self {
        Self::Fail(error)
    }
}

/// What ended a wait.
enum Woken {
    Blocker(WatchEvent),
    Myself,
    SessionOver,
    Time,
}

impl Ticket {
    pub(super) fn new(line: Line) -> Self {
        Self { line, place: None, ghosts: Vec::new() }
    }

    /// How many were in front at the last look, or `None` when there was none yet.
    #[must_use]
    pub fn ahead(&self) -> Option<usize> {
        match &self.place.as_ref()?.state {
            Judged::Unknown => None,
            Judged::Held => Some(0),
            Judged::Waiting(view) => Some(view.ahead()),
        }
    }

    /// The name of our node in the line's directory.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.place.as_ref().map(|place| place.name.as_str())
    }

    /// Waits until the place is the first that is not blocked, and takes the hold.
    ///
    /// # Ordering and fairness
    ///
    /// First in, first out, by the order in which the server committed the creates.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] when `deadline` passes first: it tells who was in front. The place is kept: wait again, or
    /// drop the ticket. [`Error::Refused`], [`Error::MixedKinds`] and [`Error::Closed`] as for
    /// [`Line::enqueue`].
    ///
    /// # Session loss
    ///
    /// Takes a new place in the next session, at the end of the line, within the deadline.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe at every await: the place is kept as long as the ticket is.
    pub async fn wait(&mut self, deadline: Deadline) -> Result<HeldNode, Error> {
        loop {
            self.enqueue(deadline).await?;
            match self.wait_in_place(deadline).await {
                Ok(held) => return Ok(held),
                Err(Interruption::StartOver) => {
                    debug!(directory = %self.line.directory(), "the place in line is lost; starting over");
                    self.leave();
                }
                Err(Interruption::Fail(error)) => return Err(error),
            }
        }
    }

    /// Takes the hold if nothing blocks now.
    pub(super) async fn try_wait(&mut self, deadline: Deadline) -> Result<Option<HeldNode>, Error> {
        loop {
            self.enqueue(deadline).await?;
            let tried = match self.look(deadline).await {
                Ok(true) => self.take(deadline).await.map(Some),
                Ok(false) => Ok(None),
                Err(interruption) => Err(interruption),
            };
            match tried {
                Ok(held) => return Ok(held),
                Err(Interruption::StartOver) => self.leave(),
                Err(Interruption::Fail(error)) => return Err(error),
            }
        }
    }

    /// Takes a place, if there is none yet.
    pub(super) async fn enqueue(&mut self, deadline: Deadline) -> Result<(), Error> {
        request_size::check(self.line.data().len())?;
        while self.place.is_none() {
            match self.take_place(deadline).await {
                Ok(place) => self.place = Some(place),
                Err(Interruption::StartOver) => {
                    debug!(directory = %self.line.directory(), "enqueueing again")
                }
                Err(Interruption::Fail(error)) => return Err(error),
            }
        }
        Ok(())
    }

    fn leave(&mut self) {
        self.place = None;
    }

    async fn take_place(&mut self, deadline: Deadline) -> Result<Place, Interruption> {
        let directory = self.line.directory().clone();
        let session = self.line.manager().session(deadline, directory.as_str()).await?;
        session.touch();
        self.ghosts.retain(|(of, _)| of.epoch() == session.epoch());
        let mut directories_made = 0;
        loop {
            let mut claim = Claim::ask(&session, &directory, self.line.label(), self.line.data());
            let mut list = session.read(|wire| wire.children(directory.as_str()));
            let (standing, stat) = match claim.answered(deadline).await {
                Ok(made) => made,
                Err(error @ WireError::Refused(Refusal::NoNode)) => {
                    if directories_made == DIRECTORIES_MAX {
                        return Err(Error::of_wire(Operation::Create, directory.as_str(), &error).into());
                    }
                    directories_made += 1;
                    self.make_directory(&session, deadline).await?;
                    continue;
                }
                Err(error) => match self.after_failed_create(&session, &mut claim, error, deadline).await? {
                    Some(made) => made,
                    None => continue,
                },
            };
            let place = Place::new(&session, standing, &directory, stat);
            // The list was sent with the create; if it does not come, another will be asked for.
            let listed = session.answer(&mut list, deadline).await;
            return self.judge(place, listed.ok(), deadline).await;
        }
    }

    /// Puts a new place in front of a first list.
    async fn judge(
        &mut self,
        mut place: Place,
        listed: Option<Vec<String>>,
        deadline: Deadline,
    ) -> Result<Place, Interruption> {
        if let Some(children) = listed {
            self.bust_ghosts(&place, &children);
            place.judge(&children, &self.line, deadline).await?;
        }
        Ok(place)
    }

    /// Deletes what an earlier attempt of this ticket turned out to have made after all.
    fn bust_ghosts(&mut self, place: &Place, children: &[String]) {
        let directory = self.line.directory();
        for (session, ghost) in self.ghosts.drain(..) {
            if let Some(child) = ghost.find(children).filter(|child| child.as_str() != place.name) {
                warn!(child, "a create without an answer took place after all; deleting its node");
                session.janitor().delete(&session, &directory.listed_child(child));
            }
        }
    }

    /// A create failed: says no, looks for its node, or asks for another try (`None`).
    async fn after_failed_create(
        &mut self,
        session: &Session,
        claim: &mut Claim,
        error: WireError,
        deadline: Deadline,
    ) -> Result<Option<(Standing, Option<Stat>)>, Interruption> {
        let path = self.line.directory().as_str();
        match error {
            WireError::SessionEnded(LossReason::Closed) => Err(Error::Closed.into()),
            WireError::SessionEnded(_) => Err(Interruption::StartOver),
            WireError::Refused(Refusal::Throttled | Refusal::SessionMoved | Refusal::ReadOnly) => {
                pause(session, deadline).await;
                time_left(deadline, path, Phase::Answer)?;
                Ok(None)
            }
            error if error.outcome() == Outcome::NotApplied => {
                Err(Error::of_wire(Operation::Create, path, &error).into())
            }
            WireError::Timeout => {
                time_left(deadline, path, Phase::Answer)?;
                // Dropping the claim leaves the late answer to the janitor.
                Err(Interruption::StartOver)
            }
            error => {
                debug!(path, %error, "a create without an answer; looking for its node");
                self.recover(session, claim, deadline).await
            }
        }
    }

    /// Looks for the node of a create whose answer was lost.
    async fn recover(
        &mut self,
        session: &Session,
        claim: &mut Claim,
        deadline: Deadline,
    ) -> Result<Option<(Standing, Option<Stat>)>, Interruption> {
        let directory = self.line.directory().clone();
        let find = janitor::find(session, &directory, claim.protection());
        let found = tokio::select! {
            found = find => found,
            () = deadline.passed() => return Err(time_over(deadline, directory.as_str(), Phase::Answer).into()),
        };
        if session.loss().is_some() {
            return Err(Interruption::StartOver);
        }
        let Some(path) = found else {
            // Provisional: the list behind the next create looks again, and so does the janitor, later.
            self.ghosts.push((session.clone(), claim.protection()));
            return Ok(None);
        };
        let connection = session.wire().map(|wire| wire.interruptions());
        let mut reply = session.read(|wire| wire.data(&path));
        match (session.answer(&mut reply, deadline).await, connection) {
            (Ok((_, stat)), Ok(connection)) => {
                // A node of another session is not ours, whatever its name says.
                session.check_owner(&path, &stat, connection).map_err(|_| Interruption::StartOver)?;
                Ok(Some((claim.found(path), Some(stat))))
            }
            // Dropping the claim leaves it to the janitor.
            _ => {
                time_left(deadline, directory.as_str(), Phase::Answer)?;
                Err(Interruption::StartOver)
            }
        }
    }

    /// Makes the line's directory, and what is missing above it.
    async fn make_directory(&self, session: &Session, deadline: Deadline) -> Result<(), Interruption> {
        make_directory(session, self.line.directory(), deadline).await.map_err(|error| match error {
            WireError::SessionEnded(LossReason::Closed) => Error::Closed.into(),
            WireError::SessionEnded(_) => Interruption::StartOver,
            error if error.outcome() == Outcome::NotApplied => {
                Error::of_wire(Operation::Create, self.line.directory().as_str(), &error).into()
            }
            // Making a directory twice does no harm: try again until the time is up.
            _ if deadline.has_passed() => {
                time_over(deadline, self.line.directory().as_str(), Phase::Answer).into()
            }
            _ => Interruption::StartOver,
        })
    }

    /// Looks at the line if needed; `true` when nothing blocks.
    async fn look(&mut self, deadline: Deadline) -> Result<bool, Interruption> {
        let Some(place) = &mut self.place else {
            return Err(Interruption::StartOver);
        };
        while matches!(place.state, Judged::Unknown) {
            place.list(&self.line, deadline).await?;
        }
        Ok(matches!(place.state, Judged::Held))
    }

    async fn wait_in_place(&mut self, deadline: Deadline) -> Result<HeldNode, Interruption> {
        while !self.look(deadline).await? {
            let Some(place) = &mut self.place else {
                return Err(Interruption::StartOver);
            };
            place.wait_for_change(&self.line, deadline).await?;
        }
        self.take(deadline).await
    }

    /// The last step: the lease is valid now, the node is not known to be gone, the token is known.
    async fn take(&mut self, deadline: Deadline) -> Result<HeldNode, Interruption> {
        let Some(place) = &mut self.place else {
            return Err(Interruption::StartOver);
        };
        let directory = self.line.directory().as_str();
        let session = place.entry.0.session().clone();
        let czxid = place.token_zxid(deadline, directory).await?;
        while !session.grant(&place.entry.0) {
            match session.until_lease_is_valid(deadline).await {
                Ok(true) => {}
                Ok(false) => return Err(time_over(deadline, directory, Phase::Confirmation).into()),
                Err(LossReason::Closed) => return Err(Error::Closed.into()),
                Err(_) => return Err(Interruption::StartOver),
            }
        }
        if place.entry.0.check().is_err() {
            return Err(Interruption::StartOver);
        }
        let Some(place) = self.place.take() else {
            return Err(Interruption::StartOver);
        };
        let token = FencingToken::from_czxid(czxid);
        debug!(path = place.entry.0.path(), %token, waited = ?deadline.waited(), "acquired");
        let Place { entry, standing, .. } = place;
        Ok(HeldNode::new(self.line.manager().clone(), Arc::clone(&entry.0), entry, standing, token))
    }
}

impl Debug for Ticket {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Ticket")
            .field("directory", self.line.directory())
            .field("name", &self.name())
            .field("ahead", &self.ahead())
            .finish_non_exhaustive()
    }
}

impl Place {
    fn new(session: &Session, standing: Standing, directory: &ZnodePath, stat: Option<Stat>) -> Self {
        let name = standing.path().rsplit('/').next().unwrap_or_default().to_owned();
        debug_assert_eq!(directory.listed_child(&name), standing.path(), "a node outside its directory");
        Self {
            entry: Entry(session.own(standing.path().to_owned())),
            standing,
            name,
            czxid: czxid(stat.as_ref()),
            state: Judged::Unknown,
            who: String::new(),
        }
    }

    fn session(&self) -> &Session {
        self.entry.0.session()
    }

    async fn list(&mut self, line: &Line, deadline: Deadline) -> Result<(), Interruption> {
        let directory = line.directory().as_str();
        let mut reply = self.session().read(|wire| wire.children(directory));
        match self.session().answer(&mut reply, deadline).await {
            Ok(children) => self.judge(&children, line, deadline).await,
            // No directory, no node of ours.
            Err(WireError::Refused(Refusal::NoNode)) => Err(self.gone()),
            Err(error) => self.look_again_after(&error, Operation::List, directory, deadline).await,
        }
    }

    async fn judge(
        &mut self,
        children: &[String],
        line: &Line,
        deadline: Deadline,
    ) -> Result<(), Interruption> {
        let mut verdict = line.rule().judge(children, &self.name);
        if let Verdict::AskCreationOrder(contenders) = verdict {
            match self.creation_order(contenders, line, deadline).await? {
                Some(ordered) => verdict = ordered,
                None => return Ok(()),
            }
        }
        self.state = match verdict {
            Verdict::Held => Judged::Held,
            Verdict::WaitFor(lower) => Judged::Waiting(View::new(lower)),
            Verdict::Gone | Verdict::AskCreationOrder(_) => return Err(self.gone()),
            Verdict::Mixed(node) => {
                return Err(Error::MixedKinds {
                    path: line.directory().to_string(),
                    child: node.to_string(),
                }
                .into());
            }
        };
        self.entry.0.set_next(matches!(&self.state, Judged::Waiting(view) if view.ahead() == 1));
        Ok(())
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

    /// Waits until something in front, or our own node, changes.
    async fn wait_for_change(&mut self, line: &Line, deadline: Deadline) -> Result<(), Interruption> {
        let Judged::Waiting(view) = &self.state else {
            return Ok(());
        };
        let Some(nearest) = view.nearest().cloned() else {
            self.state = Judged::Unknown;
            return Ok(());
        };
        let ahead = view.ahead();
        let blocker = line.directory().listed_child(nearest.as_str());
        let session = self.session().clone();
        let Some(room) = session.watch_budget().reserve(&blocker) else {
            return self.poll_instead(line, deadline).await;
        };
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
        let woken = self.sleep(watch, room, deadline).await;
        match woken {
            // Server order delivers the end of our own node first, if it came first.
            _ if self.entry.0.check().is_err() => Err(self.gone()),
            Woken::Blocker(WatchEvent::Deleted) => self.blocker_gone(&nearest, line),
            Woken::Blocker(_) => {
                self.state = Judged::Unknown;
                Ok(())
            }
            Woken::Myself => Err(self.gone()),
            Woken::SessionOver if session.loss() == Some(LossReason::Closed) => Err(Error::Closed.into()),
            Woken::SessionOver => Err(Interruption::StartOver),
            Woken::Time => {
                let phase = Phase::InLine { behind: nearest.to_string(), who: self.who.clone(), ahead };
                Err(time_over(deadline, line.directory().as_str(), phase).into())
            }
        }
    }

    async fn sleep(&self, mut watch: Watch, _room: Reservation, deadline: Deadline) -> Woken {
        let session = self.session();
        tokio::select! {
            biased;
            _ = self.entry.0.lost() => if session.loss().is_some() { Woken::SessionOver } else { Woken::Myself },
            _ = session.ended() => Woken::SessionOver,
            event = &mut watch => Woken::Blocker(event),
            () = deadline.passed() => Woken::Time,
        }
    }

    /// No room for another watch: look again after a while.
    async fn poll_instead(&mut self, line: &Line, deadline: Deadline) -> Result<(), Interruption> {
        pause(self.session(), deadline).await;
        self.state = Judged::Unknown;
        time_left(deadline, line.directory().as_str(), Phase::Answer)
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
        let Judged::Waiting(view) = &mut self.state else {
            return Ok(());
        };
        self.state = match view.gone(blocker.as_str(), line.rule()) {
            Next::Held if can_see_own_node => Judged::Held,
            Next::Held | Next::List => Judged::Unknown,
        };
        Ok(())
    }

    /// Our node is not there any more.
    fn gone(&mut self) -> Interruption {
        self.standing.is_gone();
        Interruption::StartOver
    }

    async fn token_zxid(&mut self, deadline: Deadline, directory: &str) -> Result<i64, Interruption> {
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
            WireError::Refused(Refusal::Throttled | Refusal::SessionMoved | Refusal::ReadOnly) => {
                self.state = Judged::Unknown;
                pause(self.session(), deadline).await;
                time_left(deadline, path, Phase::Answer)
            }
            WireError::Refused(_) => Err(Error::of_wire(operation, path, error).into()),
            _ => {
                debug!(path, %error, "no answer; looking again");
                self.state = Judged::Unknown;
                pause(self.session(), deadline).await;
                time_left(deadline, path, Phase::Answer)
            }
        }
    }
}

/// Makes a directory and what is missing above it, as containers where the server has them.
pub(crate) async fn make_directory(
    session: &Session,
    directory: &ZnodePath,
    deadline: Deadline,
) -> Result<(), WireError> {
    // Up to the deepest one there is, so that no right on the upper levels is needed.
    let mut missing = vec![directory.clone()];
    let mut above = directory.parent();
    while let Some(path) = above.take().filter(|path| !path.is_root()) {
        let mut reply = session.read(|wire| wire.exists(path.as_str()));
        if session.answer(&mut reply, deadline).await?.is_none() {
            above = path.parent();
            missing.push(path);
        }
    }
    while let Some(path) = missing.pop() {
        let mode = if session.has_containers() { CreateMode::Container } else { CreateMode::Persistent };
        let mut reply = session.create(path.as_str(), &[], mode);
        match session.answer(&mut reply, deadline).await {
            Ok(_) | Err(WireError::Refused(Refusal::NodeExists)) => {}
            Err(WireError::Refused(Refusal::Unimplemented | Refusal::BadRequest))
                if session.has_containers() =>
            {
                session.without_containers();
                missing.push(path);
            }
            // Reaped in between: the create that follows finds out, and all starts over.
            Err(WireError::Refused(Refusal::NoNode)) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

async fn pause(session: &Session, deadline: Deadline) {
    tokio::select! {
        () = tokio::time::sleep(session.timeout() / 40) => {}
        _ = session.ended() => {}
        () = deadline.passed() => {}
    }
}

fn time_left(deadline: Deadline, path: &str, phase: Phase) -> Result<(), Interruption> {
    if deadline.has_passed() { Err(time_over(deadline, path, phase).into()) } else { Ok(()) }
}

fn time_over(deadline: Deadline, path: &str, phase: Phase) -> Error {
    Error::Timeout { phase, path: path.to_owned(), waited: deadline.waited() }
}
