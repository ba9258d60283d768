use std::fmt::{self, Debug, Formatter};

use tracing::{Instrument, Span, debug, debug_span};

use super::call::Begun;
use super::hold::{Foothold, Hold, sequence};
use super::interruption::{Interruption, time_over};
use super::line::Line;
use super::look::Looks;
use super::name::Protection;
use super::place::{Judged, Place};
use crate::deadline::Deadline;
use crate::error::{Error, LossReason, Phase};
use crate::manager::ConnectionManager;
use crate::request_size;
use crate::session::Session;
use crate::token::FencingToken;

/// A place in a [`Line`].
///
/// Dropping it gives the place up and leaves no node behind. While it is kept, the place is kept: a wait that timed
/// out or was cancelled can be taken up again.
pub struct Ticket {
    pub(super) line: Line,
    // Boxed: who waits for the answer to its create has none yet.
    place: Option<Box<Place>>,
    /// Attempts of this ticket whose outcome could not be found out: they may still come to stand.
    pub(super) ghosts: Vec<(Session, Protection)>,
    /// The call that its first wait is a part of.
    begun: Option<Box<Begun>>,
}

impl Ticket {
    pub(super) fn new(line: Line) -> Self {
        Self { line, place: None, ghosts: Vec::new(), begun: None }
    }

    pub(super) fn begun(line: Line, begun: Begun) -> Self {
        Self { begun: Some(Box::new(begun)), ..Self::new(line) }
    }

    fn begin(&mut self, is_try: bool) -> Begun {
        self.begun.take().map_or_else(|| self.line.begin(is_try), |begun| *begun)
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

    /// The manager it works through.
    #[must_use]
    pub fn manager(&self) -> &ConnectionManager {
        self.line.manager()
    }

    /// The name of our node in the line's directory.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.place.as_ref().map(|place| place.standing.name())
    }

    /// Looks at the line now, and tells how many are in front. One round trip.
    ///
    /// Changes nothing. A place that turns out to be lost is taken anew, at the end of the line, and that is what is told.
    ///
    /// # Errors
    ///
    /// As [`wait`](Self::wait). The place is kept.
    ///
    /// # Session loss
    ///
    /// Takes a new place in the next session, at the end of the line.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the place is kept as long as the ticket is.
    pub async fn refresh(&mut self, deadline: Deadline) -> Result<usize, Error> {
        loop {
            self.enqueue(deadline).await?;
            let listed = match &mut self.place {
                Some(place) => place.list(&self.line, deadline).await,
                None => Err(Interruption::StartOver),
            };
            match listed {
                // A link that broke: the list is asked for again.
                Ok(()) => {
                    if let Some(ahead) = self.ahead() {
                        return Ok(ahead);
                    }
                }
                Err(Interruption::StartOver) => self.leave(),
                Err(Interruption::Fail(error)) => return Err(error),
            }
        }
    }

    /// Waits until the place is the first that is not blocked, and takes the hold. A ticket that has given its hold
    /// takes a new place when waited for again.
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
    pub async fn wait(&mut self, deadline: Deadline) -> Result<Hold, Error> {
        let Begun { meter, span } = self.begin(false);
        let manager = self.manager().clone();
        let waited = tokio::select! {
            biased;
            // Looked at first at each step: whatever may grant the place counts no more.
            () = manager.closing() => Err(Error::Closed),
            waited = self.wait_on(deadline).instrument(span) => waited,
        };
        let time = meter.end(&waited, |_| true);
        waited.inspect(|held| held.shown(Some(time)))
    }

    async fn wait_on(&mut self, deadline: Deadline) -> Result<Hold, Error> {
        loop {
            // Boxed, as other steps that pass: they would be a part of every task that waits.
            Box::pin(self.enqueue(deadline)).await?;
            let held = async {
                self.wait_for_turn(deadline).await?;
                Box::pin(self.take(deadline)).await
            };
            match held.await {
                Ok(held) => return Ok(held),
                Err(Interruption::StartOver) => {
                    debug!(directory = %self.line.directory(), "the place in line is lost; starting over");
                    self.leave();
                }
                Err(Interruption::Fail(error)) => return Err(error),
            }
        }
    }

    /// Waits, or tries where no time is given for that.
    pub(super) async fn wait_or_try(&mut self, deadline: Deadline) -> Result<Hold, Error> {
        match deadline.is_immediate() {
            true => Box::pin(self.try_now(deadline)).await,
            false => self.wait(deadline).await,
        }
    }

    /// Only tries, as no time is given for waiting: connection and answers get theirs all the same.
    async fn try_now(&mut self, deadline: Deadline) -> Result<Hold, Error> {
        let limit = Deadline::after(self.line.manager().operation_timeout());
        if let Some(held) = self.try_wait(limit).await? {
            return Ok(held);
        }
        let phase = match self.place.as_ref().map(|place| &place.state) {
            Some(Judged::Waiting(view)) => Phase::InLine {
                behind: view.nearest().to_string(),
                who: "not asked".to_owned(),
                ahead: view.ahead(),
            },
            _ => Phase::Answer,
        };
        Err(time_over(deadline, self.line.directory().as_str(), phase))
    }

    /// Takes the hold if nothing blocks now.
    pub(super) async fn try_wait(&mut self, deadline: Deadline) -> Result<Option<Hold>, Error> {
        let Begun { meter, span } = self.begin(true);
        let manager = self.manager().clone();
        let tried = tokio::select! {
            biased;
            () = manager.closing() => Err(Error::Closed),
            tried = self.try_on(deadline).instrument(span) => tried,
        };
        let time = meter.end(&tried, Option::is_some);
        tried.inspect(|held| held.iter().for_each(|held| held.shown(Some(time))))
    }

    async fn try_on(&mut self, deadline: Deadline) -> Result<Option<Hold>, Error> {
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

    pub(super) fn leave(&mut self) {
        self.place = None;
    }

    pub(super) fn place(&self) -> Option<&Place> {
        self.place.as_deref()
    }

    pub(super) fn place_mut(&mut self) -> Option<&mut Place> {
        self.place.as_deref_mut()
    }

    /// A place that was taken together with others.
    pub(super) fn stand_at(&mut self, place: Place) {
        self.place = Some(Box::new(place));
    }

    /// Judges the place by a list that was read behind its create, and what was seen behind that.
    pub(super) async fn judge(
        &mut self,
        children: &[String],
        connection: Option<u64>,
        glimpse: Looks,
        deadline: Deadline,
    ) -> Result<(), Interruption> {
        let Some(mut place) = self.place.take() else {
            return Err(Interruption::StartOver);
        };
        self.bust_ghosts(&place, children);
        let is_told = place.judge(children, connection, &self.line, deadline).await?;
        if is_told && matches!(place.state, Judged::Held) {
            place.glimpse = Some(Box::new(glimpse));
        }
        self.place = Some(place);
        Ok(())
    }

    /// Looks at the line if needed; `true` when nothing blocks.
    pub(super) async fn look(&mut self, deadline: Deadline) -> Result<bool, Interruption> {
        let Some(place) = &mut self.place else {
            return Err(Interruption::StartOver);
        };
        if matches!(place.state, Judged::Unknown) {
            Box::pin(place.look(&self.line, deadline)).await?;
        }
        Ok(matches!(place.state, Judged::Held))
    }

    /// Waits until nothing blocks.
    pub(super) async fn wait_for_turn(&mut self, deadline: Deadline) -> Result<(), Interruption> {
        if self.look(deadline).await? {
            return Ok(());
        }
        let span = self.place.as_ref().map_or_else(Span::none, |place| {
            debug_span!(
                "wait",
                path = place.entry.0.path(),
                recipe = self.line.recipe_name(),
                sequence = sequence(place.entry.0.path()),
                session = format_args!("{:#x}", place.session().id()),
                epoch = place.session().epoch().as_u64(),
            )
        });
        let turn = async {
            while !self.look(deadline).await? {
                let Some(place) = &mut self.place else {
                    return Err(Interruption::StartOver);
                };
                place.wait_for_change(&self.line, deadline).await?;
            }
            Ok(())
        };
        // Boxed, or every task that takes something would be as large as its wait.
        Box::pin(turn.instrument(span)).await
    }

    /// The last step: the lease is valid now, the node is not known to be gone, the token is known.
    pub(super) async fn take(&mut self, deadline: Deadline) -> Result<Hold, Interruption> {
        let Some(place) = &mut self.place else {
            return Err(Interruption::StartOver);
        };
        let directory = self.line.directory().as_str();
        let session = place.entry.0.session().clone();
        let czxid = place.token_zxid(deadline, directory).await?;
        while !session.grant(&place.entry.0) {
            let confirmed = tokio::select! {
                biased;
                confirmed = session.until_lease_is_valid(deadline) => confirmed,
                _ = place.entry.0.lost() => return Err(Interruption::StartOver),
            };
            match confirmed {
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
        let Place { entry, standing, glimpse, .. } = *place;
        let looks = glimpse.map_or_else(|| Looks::new(self.line.looks()), |glimpse| *glimpse);
        let foothold = Foothold { entry, standing };
        let manager = self.line.manager().clone();
        let recipe = Some(self.line.recipe_name());
        let held = Hold::new(manager, foothold, Vec::new(), token, recipe).looking_at(looks);
        // Looked at once it is counted: a shutdown that has not begun here waits for this hold.
        match self.line.manager().is_closing() {
            true => Err(Error::Closed.into()),
            false => Ok(held),
        }
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
