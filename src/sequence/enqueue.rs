//! Taking a place in a line: one round trip when all goes well, and no node forgotten when it does not.

use tracing::{debug, warn};

use super::claim::{Claim, Standing};
use super::directory::{Lasting, make_directory};
use super::interruption::{Interruption, pause, time_left, time_over};
use super::look::Looks;
use super::name::Kind;
use super::place::{Judged, Place};
use super::ticket::Ticket;
use crate::backend::{Stat, WireError};
use crate::deadline::Deadline;
use crate::error::{Error, LossReason, Operation, Outcome, Phase, Refusal};
use crate::janitor;
use crate::session::{Approach, Foresight, Session};

/// How often a directory is made again that was reaped between its making and our create.
const DIRECTORIES_MAX: usize = 8;

impl Ticket {
    /// Creates a node and looks at the line, in one go.
    pub(super) async fn take_place(&mut self, deadline: Deadline) -> Result<Box<Place>, Interruption> {
        let directory = self.line.directory().clone();
        let session = self.line.manager().session_to_enter(deadline, directory.as_str()).await?;
        session.touch();
        self.ghosts.retain(|(of, _)| of.epoch() == session.epoch());
        let mut directories_made = 0;
        loop {
            let connection = session.connection();
            let ask = || Claim::ask(&session, &directory, self.line.label(), self.line.data());
            let (mut claim, approach) = match self.guesses_as() {
                Some(kind) => session.approach(directory.as_str(), kind, connection, ask),
                None => (ask(), None),
            };
            let foresight = approach.as_ref().map_or(Foresight::Unknown, |approach| approach.foresight);
            let list = || session.read(|wire| wire.children(directory.as_str()));
            let list = (!foresight.is_by_number()).then(list);
            // Behind the list: if that grants the place, what is seen here is seen under the hold.
            let glimpse = || Box::new(Looks::ask(self.line.looks(), &session, connection));
            let glimpse = foresight.is_hopeful().then(glimpse);
            let (standing, stat) = match claim.answered(deadline).await {
                Ok(made) => made,
                Err(error @ WireError::Refused(Refusal::NoNode)) => {
                    if directories_made == DIRECTORIES_MAX {
                        return Err(
                            Error::of_wire(Operation::Create, directory.as_str(), &error, deadline).into()
                        );
                    }
                    directories_made += 1;
                    Box::pin(self.make_directory(&session, deadline)).await?;
                    continue;
                }
                Err(error) => {
                    match Box::pin(self.after_failed_create(&session, &mut claim, error, deadline)).await? {
                        // The list that was sent with it may have been read before it was there: another is asked for.
                        Some((standing, stat)) => {
                            return Ok(Box::new(Place::new(&session, standing, &self.line, stat, None)));
                        }
                        None => continue,
                    }
                }
            };
            let mut place = Box::new(Place::new(&session, standing, &self.line, stat, connection));
            approach.iter().for_each(Approach::stands);
            let Some(mut list) = list else {
                place.look_in_front(approach, glimpse, connection, deadline).await;
                return Ok(place);
            };
            // If the list does not come, another is asked for.
            if let Ok(children) = session.answer(&mut list, deadline).await {
                self.bust_ghosts(&place, &children);
                let is_told = place.judge(&children, connection, &self.line, deadline).await?;
                let is_held = matches!(place.state, Judged::Held);
                place.glimpse = glimpse.filter(|_| is_told && is_held);
                approach.iter().for_each(|approach| approach.saw(!is_held));
            }
            if matches!(place.state, Judged::Unknown) {
                place.look_in_front(approach, None, connection, deadline).await;
            } else if let (Some(approach), Some(position)) = (approach, place.entry.0.position()) {
                // The list has told already; what the number would have told is counted. A grant does not wait for it.
                match place.state {
                    Judged::Held => session.in_front(approach, position),
                    _ => session.before(approach, position, deadline).await,
                };
            }
            return Ok(place);
        }
    }

    /// Its kind, if its place may be judged by its number alone: there is nothing that only a list would show.
    fn guesses_as(&self) -> Option<Kind> {
        self.line.numbered_kind().filter(|_| self.ghosts.is_empty())
    }

    /// Deletes what an earlier attempt of this ticket turned out to have made after all.
    pub(super) fn bust_ghosts(&mut self, place: &Place, children: &[String]) {
        let directory = self.line.directory();
        for (session, ghost) in self.ghosts.drain(..) {
            if let Some(child) = ghost.find(children).filter(|child| child.as_str() != place.standing.name())
            {
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
            WireError::Refused(refusal) if refusal.is_transient() => {
                pause(session, deadline).await;
                time_left(deadline, path, Phase::Answer)?;
                Ok(None)
            }
            error if error.outcome() == Outcome::NotApplied => {
                Err(Error::of_wire(Operation::Create, path, &error, deadline).into())
            }
            WireError::Timeout => {
                time_left(deadline, path, Phase::Answer)?;
                // It may stand, or come to stand: the next list looks for it, and so does the janitor.
                self.ghosts.push((session.clone(), claim.protection()));
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
            biased;
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
        let mut reply = session.read(|wire| wire.data(&path));
        match session.answer(&mut reply, deadline).await {
            Ok((_, stat)) => {
                // A node of another session is not ours, whatever its name says.
                session.check_owner(&path, &stat).map_err(|_| Interruption::StartOver)?;
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
        make_directory(session, self.line.directory(), Lasting::WhileUsed, deadline).await.map_err(|error| {
            match error {
                WireError::SessionEnded(LossReason::Closed) => Error::Closed.into(),
                WireError::SessionEnded(_) => Interruption::StartOver,
                // The create that follows meets it again, and rests then.
                WireError::Refused(refusal) if refusal.is_transient() => Interruption::StartOver,
                error if error.outcome() == Outcome::NotApplied => {
                    Error::of_wire(Operation::Create, self.line.directory().as_str(), &error, deadline).into()
                }
                // Making a directory twice does no harm: try again until the time is up.
                _ if deadline.has_passed() => {
                    time_over(deadline, self.line.directory().as_str(), Phase::Answer).into()
                }
                _ => Interruption::StartOver,
            }
        })
    }
}
