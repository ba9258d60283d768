//! The guards, tickets and batch entries of the locks that an owner can acquire again.

use std::future::ready;
use std::marker::PhantomData;

use futures::future::BoxFuture;
use lockkeeper_core::{Deadline, Error, Hold, LockQueue, ReleaseError, Ticket};

use super::guard::{Guard, HoldAccess, HoldRelease, MemberGuard};
use super::recipe::{BatchEntry, Entered};
use super::ticket::{QueueTicket, QueueWait};
use crate::owner::{HoldShare, OwnerEntrance, OwnerTicket};

/// A guard's share of the hold of an owner. `K` says which guard it is.
#[derive(Debug)]
pub struct OwnerShare<K> {
    pub(crate) share: HoldShare,
    kind: PhantomData<K>,
}

/// The position of an owner. `K` says which guard a wait returns.
#[derive(Debug)]
pub struct OwnerQueued<K> {
    queued: OwnerTicket,
    kind: PhantomData<K>,
}

/// A reentrant mutex.
#[derive(Debug)]
pub enum Reentrant {}

/// The reading side of a read/write lock.
#[derive(Debug)]
pub enum Reading {}

/// The writing side of a read/write lock.
#[derive(Debug)]
pub enum Writing {}

impl<K> Guard<OwnerShare<K>> {
    pub(crate) fn sharing(share: HoldShare) -> Self {
        Self::of(OwnerShare { share, kind: PhantomData })
    }
}

impl<K: Send> QueueTicket<OwnerQueued<K>> {
    pub(crate) fn for_owner(queued: OwnerTicket) -> Self {
        Self::of(OwnerQueued { queued, kind: PhantomData })
    }
}

impl<K> HoldAccess for OwnerShare<K> {
    fn first(&self) -> &Hold {
        self.share.hold()
    }
}

impl<K: Send> HoldRelease for OwnerShare<K> {
    async fn into_hold(self) -> Result<Option<Box<Hold>>, ReleaseError> {
        self.share.into_hold().await
    }
}

impl<K: Send> QueueWait for OwnerQueued<K> {
    type Guard = Guard<OwnerShare<K>>;

    fn position(&self) -> Option<u32> {
        self.queued.ticket().map_or(Some(0), Ticket::position)
    }

    fn ticket(&mut self) -> Option<&mut Ticket> {
        self.queued.ticket_mut()
    }

    async fn wait(&mut self, deadline: Deadline) -> Result<Self::Guard, Error> {
        self.queued.wait(deadline).await.map(Guard::sharing)
    }
}

impl BatchEntry for OwnerEntrance {
    fn queue(&self, deadline: Deadline) -> LockQueue {
        self.waiter_queue(deadline)
    }

    fn enter(self: Box<Self>, hold: Hold, _: Option<Deadline>) -> BoxFuture<'static, Result<Entered, Error>> {
        let path = self.path().clone();
        let guard = Guard::<OwnerShare<Reentrant>>::sharing(Self::enter(*self, hold));
        Box::pin(ready(Ok(Some(MemberGuard::new(&path, guard)))))
    }
}
