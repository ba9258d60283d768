use parking_lot::Mutex;
use tracing::{Instrument, Span, debug, debug_span};

use super::create_guard::{CreateGuard, NodeGuard, czxid};
use super::directory::{ParentLifetime, make_directory};
use super::hold::Hold;
use super::local_queues::LocalQueues;
use super::lock_queue::LockQueue;
use super::prefetch::Prefetch;
use super::queued_node::QueuedNode;
use super::step_error::{StepError, backoff, time_left};
use super::ticket::Ticket;
use crate::config::limits::{self, DIRECTORIES_MAX};
use crate::error::{ConfigError, Error, LossReason, Operation, Outcome, Phase, Refusal};
use crate::manager::ConnectionManager;
use crate::session::Session;
use crate::session::janitor;
use crate::telemetry::timers::WaitTimer;
use crate::time::deadline::Deadline;
use crate::wire::{Created, MultiError, Reply, Stat, WireError, WriteOp, WriteResult};
use crate::znode::name::NodeName;
use crate::znode::path::ZnodePath;

/// Several lines, entered by one transaction: a place in each of them, or in none.
///
/// All places of one entry have one creation time. Among contenders that enter all their lines like this, whoever
/// waits for another came later in every line they share: no circle can close, whatever lines they name, in
/// whatever order. That does *not* hold beside contenders who take the same lines one after another.
#[derive(Clone, Debug)]
pub struct MultiQueue {
    /// The one manager of all queues.
    manager: ConnectionManager,
    queues: Vec<LockQueue>,
}

/// A read of a node that was only supposed to come to stand.
struct Early {
    path: String,
    // In a lock only so that a ticket may be shared between threads.
    reply: Mutex<Reply<Option<Stat>>>,
}

impl MultiQueue {
    /// These lines, of one manager, at directories of their own.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] when there is none, two have one directory, or they have different managers.
    pub fn new(queues: Vec<LockQueue>) -> Result<Self, Error> {
        let mut directories: Vec<&ZnodePath> = queues.iter().map(LockQueue::directory).collect();
        directories.sort();
        let twice = directories.windows(2).find_map(|pair| match pair {
            [one, other] if one == other => Some(one.to_string()),
            _ => None,
        });
        let refused =
            |value, advice| Err(Error::Config(ConfigError::Setting { name: "queues", value, advice }));
        if let Some(path) = twice {
            return refused(format!("{path} twice"), "name each line once");
        }
        let Some(manager) = queues.first().map(|queue| queue.manager().clone()) else {
            return refused("empty".to_owned(), "name at least one line");
        };
        if !queues.iter().all(|queue| queue.manager().is_same_as(&manager)) {
            return refused("of several managers".to_owned(), "make all lines with one connection manager");
        }
        Ok(Self { manager, queues })
    }

    /// Takes a place in each line and keeps them only if each is the first: `None` when someone is in front in any.
    ///
    /// One round trip: a transaction and one read of all lines are sent together. (Before 3.8.2 servers do not tell
    /// the creation time then, and one more read is sent with them if the number that the first node gets can be
    /// foreseen, or else follows, ZOOKEEPER-4026.) It never waits for anyone.
    ///
    /// # Errors
    ///
    /// As [`LockQueue::enqueue`](super::LockQueue::enqueue).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe at every await: no node is left behind.
    pub async fn try_acquire(&self, deadline: Deadline) -> Result<Option<Vec<Hold>>, Error> {
        let timers = self.timers();
        let span = debug_span!("try_acquire", lines = self.queues.len());
        let tried = tokio::select! {
            biased;
            () = self.closing() => Err(Error::Closed),
            tried = self.try_on(deadline).instrument(span) => tried,
        };
        for (index, timer) in timers.into_iter().enumerate() {
            let time = timer.end(&tried, Option::is_some);
            if let Ok(Some(hold)) =
                tried.as_ref().map(|holds| holds.as_ref().and_then(|holds| holds.get(index)))
            {
                hold.start_span(Some(time));
            }
        }
        tried
    }

    async fn try_on(&self, deadline: Deadline) -> Result<Option<Vec<Hold>>, Error> {
        let mut tickets = self.tickets();
        loop {
            let tried = match self.create_nodes(&mut tickets, deadline).await {
                Ok(()) => Self::grant_if_free(&mut tickets, deadline).await,
                Err(step_error) => Err(step_error),
            };
            match tried {
                Ok(holds) => return Ok(holds),
                Err(StepError::Restart) => Self::reset(&mut tickets),
                Err(StepError::Fail(error)) => return Err(error),
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
        let timers = self.timers();
        let span = debug_span!("acquire", lines = self.queues.len());
        let waited = tokio::select! {
            biased;
            () = self.closing() => Err(Error::Closed),
            waited = self.wait_on(deadline).instrument(span) => waited,
        };
        for (index, timer) in timers.into_iter().enumerate() {
            let time = timer.end(&waited, |_| true);
            if let Some(hold) = waited.as_ref().ok().and_then(|holds| holds.get(index)) {
                hold.start_span(Some(time));
            }
        }
        waited
    }

    async fn wait_on(&self, deadline: Deadline) -> Result<Vec<Hold>, Error> {
        let mut tickets = self.tickets();
        loop {
            let waited = match self.create_nodes(&mut tickets, deadline).await {
                Ok(()) => Self::wait(&mut tickets, deadline).await,
                Err(step_error) => Err(step_error),
            };
            match waited {
                Ok(holds) => return Ok(holds),
                Err(StepError::Restart) => {
                    debug!("the places in line are lost; starting over");
                    Self::reset(&mut tickets);
                }
                Err(StepError::Fail(error)) => return Err(error),
            }
        }
    }

    async fn closing(&self) {
        self.manager.closing().await;
    }

    /// One for each line: each is waited for.
    fn timers(&self) -> Vec<WaitTimer> {
        self.queues.iter().map(|queue| queue.timer(Span::none())).collect()
    }

    fn tickets(&self) -> Vec<Ticket> {
        self.queues.iter().cloned().map(Ticket::new).collect()
    }

    fn reset(tickets: &mut [Ticket]) {
        for ticket in tickets {
            ticket.reset();
        }
    }

    async fn grant_if_free(
        tickets: &mut [Ticket],
        deadline: Deadline,
    ) -> Result<Option<Vec<Hold>>, StepError> {
        for ticket in &mut *tickets {
            if !ticket.check_queue(deadline).await? {
                return Ok(None);
            }
        }
        Self::grant(tickets, deadline).await.map(Some)
    }

    async fn wait(tickets: &mut [Ticket], deadline: Deadline) -> Result<Vec<Hold>, StepError> {
        let mut has_waited = false;
        for ticket in &mut *tickets {
            has_waited |= !ticket.check_queue(deadline).await?;
            ticket.wait_for_turn(deadline).await?;
        }
        if has_waited {
            // In the line whose turn came at once, what was seen is long ago by now.
            for queued_node in tickets.iter_mut().filter_map(Ticket::queued_node_mut) {
                queued_node.prefetched = None;
            }
            Self::check(tickets, deadline).await?;
        }
        Self::grant(tickets, deadline).await
    }

    /// While one line was waited for, the place in another may have been deleted by hand.
    async fn check(tickets: &[Ticket], deadline: Deadline) -> Result<(), StepError> {
        let queued_nodes = tickets.iter().filter_map(Ticket::queued_node);
        let checks: Vec<WriteOp> = queued_nodes
            .map(|queued_node| WriteOp::Check {
                path: queued_node.node_guard.path().to_owned(),
                version: None,
            })
            .collect();
        let Some(session) = tickets.first().and_then(Ticket::queued_node).map(QueuedNode::session) else {
            return Err(StepError::Restart);
        };
        loop {
            match session.multi(&checks, deadline).await {
                Ok(_) => return Ok(()),
                Err(MultiError::Operation { .. }) => return Err(StepError::Restart),
                Err(MultiError::Request(WireError::SessionEnded(LossReason::Closed))) => {
                    return Err(Error::Closed.into());
                }
                Err(MultiError::Request(WireError::SessionEnded(_))) => return Err(StepError::Restart),
                Err(MultiError::Request(error)) => {
                    debug!(%error, "no answer; checking again");
                    backoff(session, deadline).await;
                    time_left(deadline, checks.first().map_or("", WriteOp::path), Phase::Answer)?;
                }
            }
        }
    }

    /// All places are first in their lines.
    async fn grant(tickets: &mut [Ticket], deadline: Deadline) -> Result<Vec<Hold>, StepError> {
        // Made by one transaction, they have one creation zxid: what one of them tells is true of all.
        let mut czxid =
            tickets.iter().filter_map(Ticket::queued_node).find_map(|queued_node| queued_node.czxid);
        for queued_node in tickets.iter_mut().filter_map(Ticket::queued_node_mut) {
            match czxid {
                None => {
                    let path = queued_node.node_guard.path().to_owned();
                    czxid = Some(queued_node.token_zxid(deadline, &path).await?);
                }
                known => queued_node.czxid = known,
            }
        }
        let mut holds = Vec::new();
        for ticket in tickets {
            holds.push(ticket.grant(deadline).await?);
        }
        match holds.iter().all(Hold::is_valid) {
            true => Ok(holds),
            false => Err(StepError::Restart),
        }
    }

    /// Makes all nodes by one transaction, and looks at all lines.
    async fn create_nodes(&self, tickets: &mut [Ticket], deadline: Deadline) -> Result<(), StepError> {
        let first = self.queues.first().map(|queue| queue.directory().as_str()).unwrap_or_default();
        limits::check(
            self.queues.iter().map(|queue| queue.data().len() + queue.directory().as_str().len()).sum(),
        )
        .map_err(Error::Config)?;
        let session = self.manager.session_for_acquire(deadline, first).await?;
        session.mark_used();
        for ticket in &mut *tickets {
            ticket.unresolved_creates.retain(|(of, _)| of.epoch() == session.epoch());
        }
        let directories: Vec<String> =
            self.queues.iter().map(|queue| queue.directory().to_string()).collect();
        let mut directories_made = 0;
        loop {
            let connection = session.connection();
            let (mut creates_in_flight, creates): (Vec<CreateGuard>, Vec<WriteOp>) = self
                .queues
                .iter()
                .map(|queue| CreateGuard::in_multi(&session, queue.directory(), queue.label(), queue.data()))
                .unzip();
            let mut made = session.send_multi(&creates);
            let early = self.ask_early(&session, &creates);
            let mut lists = session.read(|wire| wire.children_of_all(&directories));
            // Behind the lists: if those grant the places, what is seen here is seen under the hold.
            let prefetches: Vec<Prefetch> =
                self.queues.iter().map(|queue| Prefetch::send(queue.reads(), &session, connection)).collect();
            let made = match session.await_reply(&mut made, deadline).await.map_err(MultiError::Request) {
                Ok(committed) => committed,
                Err(error) => Err(error),
            };
            let node_guards = match made {
                Ok(results) => Self::register_created(&session, &mut creates_in_flight, results)?,
                Err(MultiError::Operation { index, refusal }) => {
                    creates_in_flight.iter_mut().for_each(CreateGuard::settle);
                    let directory = self.queues.get(index).map_or(first, |queue| queue.directory().as_str());
                    if refusal != Refusal::NoNode || directories_made == DIRECTORIES_MAX {
                        let error = WireError::Refused(refusal);
                        return Err(Error::of_wire(Operation::Create, directory, &error, deadline).into());
                    }
                    directories_made += 1;
                    let there = session.await_reply(&mut lists, deadline).await.unwrap_or_default();
                    self.make_directories(&session, &there, deadline).await?;
                    continue;
                }
                Err(MultiError::Request(error)) => {
                    match self
                        .after_failed_creates(&session, tickets, &mut creates_in_flight, error, deadline)
                        .await?
                    {
                        Some(node_guards) => {
                            for ((ticket, queue), (node_guard, stat)) in
                                tickets.iter_mut().zip(&self.queues).zip(node_guards)
                            {
                                ticket.set_node(QueuedNode::new(&session, node_guard, queue, stat, None));
                            }
                            return Ok(());
                        }
                        None => continue,
                    }
                }
            };
            let lists = session.await_reply(&mut lists, deadline).await;
            for (ticket, (node_guard, stat)) in tickets.iter_mut().zip(node_guards) {
                let queued_node = QueuedNode::new(&session, node_guard, &ticket.queue, stat, connection);
                ticket.set_node(queued_node);
            }
            Self::learn_creation(tickets, early, deadline).await;
            // If the lists do not come, others are asked for.
            for ((ticket, list), prefetched) in
                tickets.iter_mut().zip(lists.unwrap_or_default()).zip(prefetches)
            {
                let list = list.ok_or(StepError::Restart)?;
                ticket.judge(&list, connection, prefetched, deadline).await?;
            }
            return Ok(());
        }
    }

    /// Asks for the creation time of the node that the first line is likely to get, if the transaction will not tell it:
    /// behind that, in the same round trip.
    fn ask_early(&self, session: &Session, creates: &[WriteOp]) -> Option<Early> {
        let (queue, create) = self.queues.first().zip(creates.first())?;
        let number = LocalQueues::of(session).sequence_to_prefetch(queue.directory().as_str())?;
        let path = format!("{}{number:010}", create.path());
        let reply = Mutex::new(session.read(|wire| wire.exists(&path)));
        Some(Early { path, reply })
    }

    /// Takes what was asked early, if that was for the right node, and sees to it that it is asked for the next time.
    async fn learn_creation(tickets: &mut [Ticket], early: Option<Early>, deadline: Deadline) {
        let Some(ticket) = tickets.first_mut() else { return };
        let (directory, label) = (ticket.queue.directory().to_string(), ticket.queue.label());
        let Some(queued_node) = ticket.queued_node_mut().filter(|queued_node| queued_node.czxid.is_none())
        else {
            return;
        };
        if let Some(name) = NodeName::parse_with(queued_node.node_guard.name(), &[label]) {
            let session = queued_node.session();
            LocalQueues::of(session).record_missing_czxid(&directory, name.sequence(), session.now());
        }
        let Some(mut early) = early.filter(|early| early.path == queued_node.node_guard.path()) else {
            return;
        };
        // Whatever else it is, the node is asked for once more.
        if let Ok(Some(stat)) = queued_node.session().await_reply(early.reply.get_mut(), deadline).await {
            queued_node.czxid = czxid(Some(&stat));
        }
    }

    fn register_created(
        session: &Session,
        creates_in_flight: &mut [CreateGuard],
        results: Vec<WriteResult>,
    ) -> Result<Vec<(NodeGuard, Option<Stat>)>, StepError> {
        let mut node_guards = Vec::new();
        for (create, result) in creates_in_flight.iter_mut().zip(results) {
            let WriteResult::Created(Created { path, stat }) = result else {
                return Err(StepError::Restart);
            };
            if let Some(stat) = &stat {
                session.check_owner(&path, stat).map_err(|_| StepError::Restart)?;
            }
            node_guards.push((create.found(path), stat));
        }
        Ok(node_guards)
    }

    /// The creates failed as a whole: says no, looks for their nodes, or asks for another try (`None`).
    async fn after_failed_creates(
        &self,
        session: &Session,
        tickets: &mut [Ticket],
        creates_in_flight: &mut [CreateGuard],
        error: WireError,
        deadline: Deadline,
    ) -> Result<Option<Vec<(NodeGuard, Option<Stat>)>>, StepError> {
        let path = self.queues.first().map(|queue| queue.directory().as_str()).unwrap_or_default();
        match error {
            WireError::SessionEnded(LossReason::Closed) => return Err(Error::Closed.into()),
            WireError::SessionEnded(_) => return Err(StepError::Restart),
            WireError::Refused(refusal) => {
                creates_in_flight.iter_mut().for_each(CreateGuard::settle);
                if !refusal.is_transient() {
                    return Err(Error::of_wire(Operation::Create, path, &error, deadline).into());
                }
                backoff(session, deadline).await;
                time_left(deadline, path, Phase::Answer)?;
                return Ok(None);
            }
            error => {
                debug_assert_eq!(error.outcome(), Outcome::Unknown, "a definite answer was read as none");
                debug!(path, %error, "creates without an answer; looking for their nodes");
            }
        }
        let mut found = Vec::new();
        for (queue, create) in self.queues.iter().zip(&mut *creates_in_flight) {
            let find = janitor::find(session, queue.directory(), create.create_id());
            let path = tokio::select! {
                biased;
                found = find => found,
                () = deadline.passed() => {
                    time_left(deadline, queue.directory().as_str(), Phase::Answer)?;
                    None
                }
            };
            if session.loss().is_some() {
                return Err(StepError::Restart);
            }
            let Some(path) = path else { continue };
            let mut reply = session.read(|wire| wire.exists(&path));
            match session.await_reply(&mut reply, deadline).await {
                Ok(Some(stat)) => {
                    session.check_owner(&path, &stat).map_err(|_| StepError::Restart)?;
                    found.push((create.found(path), Some(stat)));
                }
                // Dropping the claim leaves it to the janitor.
                _ => {
                    time_left(deadline, &path, Phase::Answer)?;
                    return Err(StepError::Restart);
                }
            }
        }
        match found.len() {
            all if all == self.queues.len() => Ok(Some(found)),
            0 => {
                // Provisional: the lists behind the next try look again, and so does the janitor, later.
                for (ticket, create) in tickets.iter_mut().zip(creates_in_flight) {
                    ticket.unresolved_creates.push((session.clone(), create.create_id()));
                }
                Ok(None)
            }
            // Some were deleted by hand: the others go, too.
            _ => Err(StepError::Restart),
        }
    }

    async fn make_directories(
        &self,
        session: &Session,
        there: &[Option<Vec<String>>],
        deadline: Deadline,
    ) -> Result<(), StepError> {
        for (number, queue) in self.queues.iter().enumerate() {
            if there.get(number).is_some_and(Option::is_some) {
                continue;
            }
            let path = queue.directory().as_str();
            match make_directory(session, queue.directory(), ParentLifetime::WhileUsed, deadline).await {
                Ok(()) => {}
                Err(WireError::SessionEnded(LossReason::Closed)) => return Err(Error::Closed.into()),
                Err(WireError::SessionEnded(_)) => return Err(StepError::Restart),
                Err(error @ WireError::Refused(refusal)) if !refusal.is_transient() => {
                    return Err(Error::of_wire(Operation::Create, path, &error, deadline).into());
                }
                // Making a directory twice does no harm: try again until the time is up.
                Err(_) => {
                    backoff(session, deadline).await;
                    time_left(deadline, path, Phase::Answer)?;
                }
            }
        }
        Ok(())
    }
}
