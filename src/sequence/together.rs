use parking_lot::Mutex;
use tracing::{Instrument, Span, debug, debug_span};

use super::claim::{Claim, Standing, czxid};
use super::directory::{Lasting, make_directory};
use super::hold::Hold;
use super::interruption::{Interruption, pause, time_left};
use super::line::Line;
use super::look::Looks;
use super::name::NodeName;
use super::place::Place;
use super::ticket::Ticket;
use crate::backend::{Created, MultiError, Reply, Stat, WireError, WriteOp, WriteResult};
use crate::deadline::Deadline;
use crate::error::{ConfigError, Error, LossReason, Operation, Outcome, Phase, Refusal};
use crate::janitor;
use crate::meter::Wait;
use crate::path::ZnodePath;
use crate::request_size;
use crate::session::Session;

/// How often directories are made again that were reaped between their making and our creates.
const DIRECTORIES_MAX: usize = 8;

/// Several lines, entered by one transaction: a place in each of them, or in none.
///
/// All places of one entry have one creation time. Among contenders that enter all their lines like this, whoever
/// waits for another came later in every line they share: no circle can close, whatever lines they name, in
/// whatever order. That does *not* hold beside contenders who take the same lines one after another.
#[derive(Clone, Debug)]
pub struct Lines(Vec<Line>);

/// A read of a node that was only supposed to come to stand.
struct Early {
    path: String,
    // In a lock only so that a ticket may be shared between threads.
    reply: Mutex<Reply<Option<Stat>>>,
}

impl Lines {
    /// These lines, of one manager, at directories of their own.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] when there is none, or two have one directory.
    pub fn new(lines: Vec<Line>) -> Result<Self, Error> {
        let mut directories: Vec<&ZnodePath> = lines.iter().map(Line::directory).collect();
        directories.sort();
        let twice = directories.windows(2).find_map(|pair| match pair {
            [one, other] if one == other => Some(one.to_string()),
            _ => None,
        });
        if lines.is_empty() || twice.is_some() {
            return Err(Error::Config(ConfigError::Setting {
                name: "lines",
                value: twice.map_or_else(|| "empty".to_owned(), |path| format!("{path} twice")),
                advice: "name each line once",
            }));
        }
        Ok(Self(lines))
    }

    /// Takes a place in each line and keeps them only if each is the first: `None` when someone is in front in any.
    ///
    /// One round trip: a transaction and one read of all lines are sent together. (Before 3.8.2 servers do not tell
    /// the creation time then, and one more read is sent with them if the number that the first node gets can be
    /// foreseen, or else follows, ZOOKEEPER-4026.) It never waits for anyone.
    ///
    /// # Errors
    ///
    /// As [`Line::enqueue`](super::Line::enqueue).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe at every await: no node is left behind.
    pub async fn try_acquire(&self, deadline: Deadline) -> Result<Option<Vec<Hold>>, Error> {
        let meters = self.meters();
        let span = debug_span!("try_acquire", lines = self.0.len());
        let tried = tokio::select! {
            biased;
            () = self.closing() => Err(Error::Closed),
            tried = self.try_on(deadline).instrument(span) => tried,
        };
        for (place, meter) in meters.into_iter().enumerate() {
            let time = meter.end(&tried, Option::is_some);
            if let Ok(Some(hold)) =
                tried.as_ref().map(|holds| holds.as_ref().and_then(|holds| holds.get(place)))
            {
                hold.shown(Some(time));
            }
        }
        tried
    }

    async fn try_on(&self, deadline: Deadline) -> Result<Option<Vec<Hold>>, Error> {
        let mut tickets = self.tickets();
        loop {
            let tried = match self.enter(&mut tickets, deadline).await {
                Ok(()) => Self::take_if_free(&mut tickets, deadline).await,
                Err(interruption) => Err(interruption),
            };
            match tried {
                Ok(holds) => return Ok(holds),
                Err(Interruption::StartOver) => Self::leave(&mut tickets),
                Err(Interruption::Fail(error)) => return Err(error),
            }
        }
    }

    /// Takes a place in each line, and waits in all of them at once until each is the first.
    ///
    /// # Errors
    ///
    /// As [`Ticket::wait`](super::Ticket::wait); every place is given up then.
    ///
    /// # Session loss
    ///
    /// Enters all lines again in the next session, within the deadline.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe at every await: your places are lost, and no node is left behind.
    pub async fn acquire(&self, deadline: Deadline) -> Result<Vec<Hold>, Error> {
        let meters = self.meters();
        let span = debug_span!("acquire", lines = self.0.len());
        let waited = tokio::select! {
            biased;
            () = self.closing() => Err(Error::Closed),
            waited = self.wait_on(deadline).instrument(span) => waited,
        };
        for (place, meter) in meters.into_iter().enumerate() {
            let time = meter.end(&waited, |_| true);
            if let Some(hold) = waited.as_ref().ok().and_then(|holds| holds.get(place)) {
                hold.shown(Some(time));
            }
        }
        waited
    }

    async fn wait_on(&self, deadline: Deadline) -> Result<Vec<Hold>, Error> {
        let mut tickets = self.tickets();
        loop {
            let waited = match self.enter(&mut tickets, deadline).await {
                Ok(()) => Self::wait(&mut tickets, deadline).await,
                Err(interruption) => Err(interruption),
            };
            match waited {
                Ok(holds) => return Ok(holds),
                Err(Interruption::StartOver) => {
                    debug!("the places in line are lost; starting over");
                    Self::leave(&mut tickets);
                }
                Err(Interruption::Fail(error)) => return Err(error),
            }
        }
    }

    async fn closing(&self) {
        match self.0.first() {
            Some(line) => line.manager().closing().await,
            None => std::future::pending().await,
        }
    }

    /// One for each line: each is waited for.
    fn meters(&self) -> Vec<Wait> {
        self.0.iter().map(|line| line.meter(Span::none())).collect()
    }

    fn tickets(&self) -> Vec<Ticket> {
        self.0.iter().cloned().map(Ticket::new).collect()
    }

    fn leave(tickets: &mut [Ticket]) {
        for ticket in tickets {
            ticket.leave();
        }
    }

    async fn take_if_free(
        tickets: &mut [Ticket],
        deadline: Deadline,
    ) -> Result<Option<Vec<Hold>>, Interruption> {
        for ticket in &mut *tickets {
            if !ticket.look(deadline).await? {
                return Ok(None);
            }
        }
        Self::take(tickets, deadline).await.map(Some)
    }

    async fn wait(tickets: &mut [Ticket], deadline: Deadline) -> Result<Vec<Hold>, Interruption> {
        let mut has_waited = false;
        for ticket in &mut *tickets {
            has_waited |= !ticket.look(deadline).await?;
            ticket.wait_for_turn(deadline).await?;
        }
        if has_waited {
            // In the line whose turn came at once, what was seen is long ago by now.
            for place in tickets.iter_mut().filter_map(Ticket::place_mut) {
                place.glimpse = None;
            }
            Self::check(tickets, deadline).await?;
        }
        Self::take(tickets, deadline).await
    }

    /// While one line was waited for, the place in another may have been deleted by hand.
    async fn check(tickets: &[Ticket], deadline: Deadline) -> Result<(), Interruption> {
        let places = tickets.iter().filter_map(Ticket::place);
        let checks: Vec<WriteOp> = places
            .map(|place| WriteOp::Check { path: place.standing.path().to_owned(), version: None })
            .collect();
        let Some(session) = tickets.first().and_then(Ticket::place).map(Place::session) else {
            return Err(Interruption::StartOver);
        };
        loop {
            match session.multi(&checks, deadline).await {
                Ok(_) => return Ok(()),
                Err(MultiError::Operation { .. }) => return Err(Interruption::StartOver),
                Err(MultiError::Request(WireError::SessionEnded(LossReason::Closed))) => {
                    return Err(Error::Closed.into());
                }
                Err(MultiError::Request(WireError::SessionEnded(_))) => return Err(Interruption::StartOver),
                Err(MultiError::Request(error)) => {
                    debug!(%error, "no answer; checking again");
                    pause(session, deadline).await;
                    time_left(deadline, checks.first().map_or("", WriteOp::path), Phase::Answer)?;
                }
            }
        }
    }

    /// All places are first in their lines.
    async fn take(tickets: &mut [Ticket], deadline: Deadline) -> Result<Vec<Hold>, Interruption> {
        // Made by one transaction, they have one creation zxid: what one of them tells is true of all.
        let mut czxid = tickets.iter().filter_map(Ticket::place).find_map(|place| place.czxid);
        for place in tickets.iter_mut().filter_map(Ticket::place_mut) {
            match czxid {
                None => {
                    let path = place.standing.path().to_owned();
                    czxid = Some(place.token_zxid(deadline, &path).await?);
                }
                known => place.czxid = known,
            }
        }
        let mut holds = Vec::new();
        for ticket in tickets {
            holds.push(ticket.take(deadline).await?);
        }
        match holds.iter().all(Hold::is_valid) {
            true => Ok(holds),
            false => Err(Interruption::StartOver),
        }
    }

    /// Makes all nodes by one transaction, and looks at all lines.
    async fn enter(&self, tickets: &mut [Ticket], deadline: Deadline) -> Result<(), Interruption> {
        let first = self.0.first().map(|line| line.directory().as_str()).unwrap_or_default();
        request_size::check(
            self.0.iter().map(|line| line.data().len() + line.directory().as_str().len()).sum(),
        )
        .map_err(Error::Config)?;
        let manager = self.0.first().map(Line::manager).ok_or(Error::Closed)?;
        let session = manager.session_to_enter(deadline, first).await?;
        session.touch();
        for ticket in &mut *tickets {
            ticket.ghosts.retain(|(of, _)| of.epoch() == session.epoch());
        }
        let directories: Vec<String> = self.0.iter().map(|line| line.directory().to_string()).collect();
        let mut directories_made = 0;
        loop {
            let connection = session.connection();
            let (mut claims, creates): (Vec<Claim>, Vec<WriteOp>) = self
                .0
                .iter()
                .map(|line| Claim::together(&session, line.directory(), line.label(), line.data()))
                .unzip();
            let mut made = session.send_multi(&creates);
            let early = self.ask_early(&session, &creates);
            let mut lists = session.read(|wire| wire.children_of_all(&directories));
            // Behind the lists: if those grant the places, what is seen here is seen under the hold.
            let glimpses: Vec<Looks> =
                self.0.iter().map(|line| Looks::ask(line.looks(), &session, connection)).collect();
            let made = match session.answer(&mut made, deadline).await.map_err(MultiError::Request) {
                Ok(committed) => committed,
                Err(error) => Err(error),
            };
            let standing = match made {
                Ok(results) => Self::stand(&session, &mut claims, results)?,
                Err(MultiError::Operation { index, refusal }) => {
                    claims.iter_mut().for_each(Claim::settle);
                    let directory = self.0.get(index).map_or(first, |line| line.directory().as_str());
                    if refusal != Refusal::NoNode || directories_made == DIRECTORIES_MAX {
                        let error = WireError::Refused(refusal);
                        return Err(Error::of_wire(Operation::Create, directory, &error, deadline).into());
                    }
                    directories_made += 1;
                    let there = session.answer(&mut lists, deadline).await.unwrap_or_default();
                    self.make_directories(&session, &there, deadline).await?;
                    continue;
                }
                Err(MultiError::Request(error)) => {
                    match self.after_failed_creates(&session, tickets, &mut claims, error, deadline).await? {
                        Some(standing) => {
                            for ((ticket, line), (standing, stat)) in
                                tickets.iter_mut().zip(&self.0).zip(standing)
                            {
                                ticket.stand_at(Place::new(&session, standing, line, stat, None));
                            }
                            return Ok(());
                        }
                        None => continue,
                    }
                }
            };
            let lists = session.answer(&mut lists, deadline).await;
            for (ticket, (standing, stat)) in tickets.iter_mut().zip(standing) {
                let place = Place::new(&session, standing, &ticket.line, stat, connection);
                ticket.stand_at(place);
            }
            Self::learn_creation(tickets, early, deadline).await;
            // If the lists do not come, others are asked for.
            for ((ticket, list), glimpse) in tickets.iter_mut().zip(lists.unwrap_or_default()).zip(glimpses) {
                let list = list.ok_or(Interruption::StartOver)?;
                ticket.judge(&list, connection, glimpse, deadline).await?;
            }
            return Ok(());
        }
    }

    /// Asks for the creation time of the node that the first line is likely to get, if the transaction will not tell it:
    /// behind that, in the same round trip.
    fn ask_early(&self, session: &Session, creates: &[WriteOp]) -> Option<Early> {
        let (line, create) = self.0.first().zip(creates.first())?;
        let number = session.number_to_ask_for(line.directory().as_str())?;
        let path = format!("{}{number:010}", create.path());
        let reply = Mutex::new(session.read(|wire| wire.exists(&path)));
        Some(Early { path, reply })
    }

    /// Takes what was asked early, if that was for the right node, and sees to it that it is asked for the next time.
    async fn learn_creation(tickets: &mut [Ticket], early: Option<Early>, deadline: Deadline) {
        let Some(ticket) = tickets.first_mut() else { return };
        let directory = ticket.line.directory().to_string();
        let Some(place) = ticket.place_mut().filter(|place| place.czxid.is_none()) else { return };
        if let Some(sequence) = NodeName::parse(place.standing.name()).map(|name| name.sequence()) {
            place.session().creation_is_untold(&directory, sequence);
        }
        let Some(mut early) = early.filter(|early| early.path == place.standing.path()) else { return };
        // Whatever else it is, the node is asked for once more.
        if let Ok(Some(stat)) = place.session().answer(early.reply.get_mut(), deadline).await {
            place.czxid = czxid(Some(&stat));
        }
    }

    fn stand(
        session: &Session,
        claims: &mut [Claim],
        results: Vec<WriteResult>,
    ) -> Result<Vec<(Standing, Option<Stat>)>, Interruption> {
        let mut standing = Vec::new();
        for (claim, result) in claims.iter_mut().zip(results) {
            let WriteResult::Created(Created { path, stat }) = result else {
                return Err(Interruption::StartOver);
            };
            if let Some(stat) = &stat {
                session.check_owner(&path, stat).map_err(|_| Interruption::StartOver)?;
            }
            standing.push((claim.found(path), stat));
        }
        Ok(standing)
    }

    /// The creates failed as a whole: says no, looks for their nodes, or asks for another try (`None`).
    async fn after_failed_creates(
        &self,
        session: &Session,
        tickets: &mut [Ticket],
        claims: &mut [Claim],
        error: WireError,
        deadline: Deadline,
    ) -> Result<Option<Vec<(Standing, Option<Stat>)>>, Interruption> {
        let path = self.0.first().map(|line| line.directory().as_str()).unwrap_or_default();
        match error {
            WireError::SessionEnded(LossReason::Closed) => return Err(Error::Closed.into()),
            WireError::SessionEnded(_) => return Err(Interruption::StartOver),
            WireError::Refused(refusal) => {
                claims.iter_mut().for_each(Claim::settle);
                if !refusal.is_transient() {
                    return Err(Error::of_wire(Operation::Create, path, &error, deadline).into());
                }
                pause(session, deadline).await;
                time_left(deadline, path, Phase::Answer)?;
                return Ok(None);
            }
            error => {
                debug_assert_eq!(error.outcome(), Outcome::Unknown, "a definite answer was read as none");
                debug!(path, %error, "creates without an answer; looking for their nodes");
            }
        }
        let mut found = Vec::new();
        for (line, claim) in self.0.iter().zip(&mut *claims) {
            let find = janitor::find(session, line.directory(), claim.protection());
            let path = tokio::select! {
                biased;
                found = find => found,
                () = deadline.passed() => {
                    time_left(deadline, line.directory().as_str(), Phase::Answer)?;
                    None
                }
            };
            if session.loss().is_some() {
                return Err(Interruption::StartOver);
            }
            let Some(path) = path else { continue };
            let mut reply = session.read(|wire| wire.exists(&path));
            match session.answer(&mut reply, deadline).await {
                Ok(Some(stat)) => {
                    session.check_owner(&path, &stat).map_err(|_| Interruption::StartOver)?;
                    found.push((claim.found(path), Some(stat)));
                }
                // Dropping the claim leaves it to the janitor.
                _ => {
                    time_left(deadline, &path, Phase::Answer)?;
                    return Err(Interruption::StartOver);
                }
            }
        }
        match found.len() {
            all if all == self.0.len() => Ok(Some(found)),
            0 => {
                // Provisional: the lists behind the next try look again, and so does the janitor, later.
                for (ticket, claim) in tickets.iter_mut().zip(claims) {
                    ticket.ghosts.push((session.clone(), claim.protection()));
                }
                Ok(None)
            }
            // Some were deleted by hand: the others go, too.
            _ => Err(Interruption::StartOver),
        }
    }

    async fn make_directories(
        &self,
        session: &Session,
        there: &[Option<Vec<String>>],
        deadline: Deadline,
    ) -> Result<(), Interruption> {
        for (number, line) in self.0.iter().enumerate() {
            if there.get(number).is_some_and(Option::is_some) {
                continue;
            }
            let path = line.directory().as_str();
            match make_directory(session, line.directory(), Lasting::WhileUsed, deadline).await {
                Ok(()) => {}
                Err(WireError::SessionEnded(LossReason::Closed)) => return Err(Error::Closed.into()),
                Err(WireError::SessionEnded(_)) => return Err(Interruption::StartOver),
                Err(error @ WireError::Refused(refusal)) if !refusal.is_transient() => {
                    return Err(Error::of_wire(Operation::Create, path, &error, deadline).into());
                }
                // Making a directory twice does no harm: try again until the time is up.
                Err(_) => {
                    pause(session, deadline).await;
                    time_left(deadline, path, Phase::Answer)?;
                }
            }
        }
        Ok(())
    }
}
