//! The acquire of a lock by an owner that may hold it already.

use lockkeeper_core::{Deadline, Error, Hold, HoldExt, Label, LockQueue, Phase, Ticket, ZnodePath};
use lockkeeper_lock::Owner;

use super::owner_slot::{HoldShare, NextStep, OwnerHolds, OwnerReservation};
use super::side::Side;

impl OwnerHolds {
    /// Waits for one side. Returns at once if a hold of the owner grants it.
    pub(crate) async fn acquire(
        &self,
        side: Side,
        owner: &Owner,
        deadline: Deadline,
    ) -> Result<HoldShare, Error> {
        // A deadline of zero still leaves time for the answer.
        let limit = if deadline.has_passed() { self.limit() } else { deadline };
        if let NextStep::Share(share) = self.next_step(side, owner)? {
            return Ok(share);
        }
        let reservation = self.reserve(owner, deadline).await?;
        let hold = match reservation.next_step(side)? {
            NextStep::Share(share) => return Ok(share),
            NextStep::AddReader(write) => self.add_reader(write.hold(), owner, limit).await?,
            NextStep::Queue => self.wait_in_queue(side, owner, deadline).await?,
        };
        Ok(reservation.enter(side, hold))
    }

    /// Takes one side if it is free now, or if a hold of the owner grants it.
    pub(crate) async fn try_acquire(&self, side: Side, owner: &Owner) -> Result<Option<HoldShare>, Error> {
        if let NextStep::Share(share) = self.next_step(side, owner)? {
            return Ok(Some(share));
        }
        // Another task of the same owner acquires the lock: it is not free now.
        let Some(reservation) = self.try_reserve(owner) else {
            return Ok(None);
        };
        let hold = match reservation.next_step(side)? {
            NextStep::Share(share) => return Ok(Some(share)),
            NextStep::AddReader(write) => Some(self.add_reader(write.hold(), owner, self.limit()).await?),
            NextStep::Queue => self.queue_of(side, owner).try_acquire(self.limit()).await?,
        };
        Ok(hold.map(|hold| reservation.enter(side, hold)))
    }

    /// Queues for one side, unless a hold of the owner grants it.
    pub(crate) async fn enqueue(&self, side: Side, owner: &Owner) -> Result<OwnerTicket, Error> {
        let queued = match self.next_step(side, owner)? {
            NextStep::Queue => self.queue_up(side, owner).await?,
            NextStep::Share(_) | NextStep::AddReader(_) => None,
        };
        Ok(OwnerTicket { lock: self.clone(), side, owner: owner.clone(), queued })
    }

    async fn queue_up(&self, side: Side, owner: &Owner) -> Result<Option<QueuedOwner>, Error> {
        let reservation = self.reserve(owner, Deadline::never()).await?;
        match reservation.next_step(side)? {
            NextStep::Queue => {
                let ticket = self.queue_of(side, owner).enqueue(Deadline::never()).await?;
                Ok(Some(QueuedOwner { ticket, reservation }))
            }
            NextStep::Share(_) | NextStep::AddReader(_) => Ok(None),
        }
    }

    /// Prepares an acquire of this lock together with others. `None` if the owner holds the lock, or if
    /// another of its tasks acquires it.
    pub(crate) fn entrance(&self, side: Side, owner: &Owner) -> Option<OwnerEntrance> {
        let reservation = self.try_reserve(owner)?;
        let Ok(NextStep::Queue) = reservation.next_step(side) else { return None };
        Some(OwnerEntrance { side, reservation })
    }

    /// Creates a read node beside the owner's own write node. Cancel safe.
    pub(crate) async fn add_reader(
        &self,
        write: &Hold,
        owner: &Owner,
        deadline: Deadline,
    ) -> Result<Hold, Error> {
        let data = self.data_of(owner);
        tokio::select! {
            biased;
            hold = write.add_reader(Label::READ, data) => hold,
            () = deadline.passed() => {
                let (path, waited) = (self.whole_path(), deadline.waited());
                Err(Error::Timeout { phase: Phase::Answer, path, waited })
            }
        }
    }
}

/// An owner's position in the queue.
#[derive(Debug)]
pub(crate) struct OwnerTicket {
    lock: OwnerHolds,
    side: Side,
    owner: Owner,
    /// `None` if a hold of the owner grants the side at once, or after the ticket returned its guard.
    queued: Option<QueuedOwner>,
}

#[derive(Debug)]
struct QueuedOwner {
    // Dropped in this order: the owner's other tasks continue when the position is given up.
    ticket: Ticket,
    reservation: OwnerReservation,
}

impl OwnerTicket {
    /// `None` if the ticket needs no position.
    pub(crate) fn ticket(&self) -> Option<&Ticket> {
        self.queued.as_ref().map(|queued| &queued.ticket)
    }

    /// `None` if the ticket needs no position.
    pub(crate) fn ticket_mut(&mut self) -> Option<&mut Ticket> {
        self.queued.as_mut().map(|queued| &mut queued.ticket)
    }

    pub(crate) async fn wait(&mut self, deadline: Deadline) -> Result<HoldShare, Error> {
        let hold = match &mut self.queued {
            Some(queued) => Some(queued.ticket.wait(deadline).await?),
            None => None,
        };
        match (hold, self.queued.take()) {
            (Some(hold), Some(QueuedOwner { reservation, .. })) => Ok(reservation.enter(self.side, hold)),
            _ => self.lock.acquire(self.side, &self.owner, deadline).await,
        }
    }
}

/// The right of an owner to enter the queue of one side. The owner's other tasks wait meanwhile.
#[derive(Debug)]
pub(crate) struct OwnerEntrance {
    side: Side,
    reservation: OwnerReservation,
}

impl OwnerEntrance {
    pub(crate) fn path(&self) -> &ZnodePath {
        self.reservation.lock().path()
    }

    /// The queue to wait in until `deadline`.
    pub(crate) fn waiter_queue(&self, deadline: Deadline) -> LockQueue {
        self.reservation.waiter_queue(self.side, deadline)
    }

    /// Records the hold that the queue granted.
    pub(crate) fn enter(self, hold: Hold) -> HoldShare {
        self.reservation.enter(self.side, hold)
    }
}
