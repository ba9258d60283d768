use std::fmt::{self, Debug, Formatter};
use std::time::Duration;

use lockkeeper_core::{Deadline, Error, ManagerExt, Phase, PresenceState, ViewBounds, Watch, WatchSource};
use tokio::sync::{mpsc, oneshot, watch};

use super::handle::{ItemsView, Partition};
use super::item::AssignedItem;
use super::offers::Offers;
use super::share::PartitionShare;
use super::task::{Channels, Left, MemberTask};
use crate::group::{MembersView, Membership};
use crate::participant_id::check_holder;
use crate::view::ChildrenView;

/// A member of a [`Partition`], which outlives sessions: it gets a share of the items, one by one.
///
/// A drop leaves in the background: the group at once, and each item when its guard is dropped. The guards
/// resolve [`release_requested`](AssignedItem::release_requested). [`leave`](Self::leave) hands over.
///
/// A [shutdown](lockkeeper_core::ConnectionManager::shutdown_within) that leaves holders time does the same.
#[must_use = "a member that is not kept leaves at once"]
pub struct PartitionMember {
    partition: Partition,
    id: String,
    presence: Watch<PresenceState>,
    offers: Offers,
    leave: mpsc::UnboundedSender<Left>,
    share: watch::Receiver<PartitionShare>,
}

/// The share of a member, for a [`Watch`].
#[derive(Clone, Debug)]
struct ShareSource(watch::Receiver<PartitionShare>);

impl WatchSource for ShareSource {
    type State = PartitionShare;

    fn state(&self) -> PartitionShare {
        self.0.borrow().clone()
    }

    async fn changed(&mut self) -> Result<PartitionShare, Error> {
        self.0.changed().await.map_err(|_| Error::Closed)?;
        Ok(self.0.borrow_and_update().clone())
    }
}

impl Partition {
    /// Begins to join with this id, in the background: a share of the items goes to this member.
    /// [`PartitionMember::next`] returns them one by one. The member leaves when it is dropped.
    ///
    /// Each member needs an id of its own, such as its address, and the same one after a restart if it is to
    /// get the same items. The second member with one id gets no item until the first has left: see
    /// [`Group::join`](crate::Group::join).
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the id is empty, longer than 1024 bytes, or is no valid name of a node, if it is
    /// `__REVOKE__` or begins with that and a space, by which a holder is asked to release, and without a
    /// tokio runtime; [`Error::Closed`] after a shutdown has begun.
    pub fn join(&self, id: &str) -> Result<PartitionMember, Error> {
        self.join_within(id, ViewBounds::default())
    }

    /// As [`join`](Self::join), with these bounds for the view of the members and for that of the items. A
    /// partition that exceeds them stays as it is for this member.
    ///
    /// # Errors
    ///
    /// As [`join`](Self::join).
    pub fn join_within(&self, id: &str, bounds: ViewBounds) -> Result<PartitionMember, Error> {
        check_holder(id)?;
        let group = self.group()?;
        let items = ChildrenView::new_bounded(&self.manager, self.items_path()?, bounds)?;
        let members = group.members_within(bounds)?;
        PartitionMember::begin(self.clone(), group.join(id, "")?, members, items)
    }
}

impl PartitionMember {
    pub(super) fn begin(
        partition: Partition,
        membership: Membership,
        members: MembersView,
        items: ItemsView,
    ) -> Result<Self, Error> {
        partition.manager().ensure_runtime()?;
        let (offering, offers) = Offers::pair();
        let (leave, leaves) = mpsc::unbounded_channel();
        let (publish, share) = watch::channel(PartitionShare::default());
        let channels = Channels { offers: offering, leaves, share: publish };
        let (id, presence) = (membership.id().to_owned(), membership.watch());
        let task = MemberTask::new(partition.clone(), membership, members, items, channels);
        partition.manager().spawn(task.run(presence.clone()));
        Ok(Self { partition, id, presence, offers, leave, share })
    }

    /// The id of the member.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The partition.
    #[must_use]
    pub fn partition(&self) -> &Partition {
        &self.partition
    }

    /// Whether this process is a member, as far as is known: see [`Membership`].
    #[must_use]
    pub fn state(&self) -> PresenceState {
        self.presence.state()
    }

    /// Waits for the next item that this member holds, without a limit of time. `None` once a shutdown of
    /// the manager has begun.
    ///
    /// Call it again soon: an item that is not taken from here is held, and nobody works on it. If it has to
    /// be given up meanwhile, the member does so by itself, and does not return it. If its hold is lost
    /// meanwhile, the member acquires it again, and returns the new hold.
    ///
    /// # Session loss
    ///
    /// The wait continues in the next session. An item that was returned before may be returned again, after
    /// its guard was lost and dropped.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: an item that was not returned is returned next time.
    pub async fn next(&mut self) -> Option<AssignedItem> {
        self.offers.next().await
    }

    /// Follows the share of this member: what belongs to it, and what it holds. The watch does not keep the
    /// member alive.
    #[must_use]
    pub fn assigned(&self) -> Watch<PartitionShare> {
        let mut share = self.share.clone();
        share.mark_changed();
        ShareSource(share).into_watch()
    }

    /// Waits until this member is in the group, and holds the items that belong to it and no other, for at
    /// most `timeout`. The members of a group need not have settled then.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], which says what the member has and what it waits for. [`Error::Closed`] after a
    /// shutdown.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: nothing is lost.
    pub async fn settled(&self, timeout: Duration) -> Result<PartitionShare, Error> {
        let limit = Deadline::after(timeout);
        let mut share = self.share.clone();
        let is_settled = |share: &PartitionShare| share.members() > 0 && share.is_settled();
        tokio::select! {
            biased;
            settled = share.wait_for(is_settled) => {
                settled.map(|share| share.clone()).map_err(|_| Error::Closed)
            }
            () = limit.passed() => {
                let phase = format!("waiting for a share of items, which {}", *self.share.borrow());
                Err(self.timeout(phase, limit))
            }
        }
    }

    /// Leaves the group, hands each item over to the member that asks for it, and waits until all guards are
    /// dropped. If there is no other member, all items are given up at once.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] after the manager's operation timeout: every guard has resolved
    /// [`release_requested`](AssignedItem::release_requested) by then, and is released when it is dropped.
    /// Otherwise as [`Membership::leave`].
    ///
    /// # Session loss
    ///
    /// The items are lost with the session, and the member does not join again.
    ///
    /// # Cancel safety
    ///
    /// As a drop of the member.
    pub async fn leave(self) -> Result<(), Error> {
        self.offers.close();
        let (left, leaving) = oneshot::channel();
        let _ = self.leave.send(left);
        let limit = Deadline::after(self.partition.manager().operation_timeout());
        tokio::select! {
            biased;
            left = leaving => left.unwrap_or(Err(Error::Closed)),
            () = limit.passed() => {
                let held = self.share.borrow().held().count();
                Err(self.timeout(format!("waiting until the guards of {held} items are dropped"), limit))
            }
        }
    }

    fn timeout(&self, phase: String, limit: Deadline) -> Error {
        let path = self.partition.whole_path();
        Error::Timeout { phase: Phase::Recipe(phase.into()), path, waited: limit.waited() }
    }
}

impl Debug for PartitionMember {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("PartitionMember")
            .field("path", self.partition.path())
            .field("id", &self.id)
            .field("state", &self.state())
            .field("share", &*self.share.borrow())
            .finish_non_exhaustive()
    }
}
