use std::time::Duration;

use lockkeeper_core::{Error, IntoPath, OnDeletion, PresenceState, ViewBounds, ZnodePath};

use super::error::CannotBlock;
use super::generic::Blocking;
use super::manager::ConnectionManager;
use super::view::ChildrenView;
use super::watch::{PresenceWatch, Watch};
use crate::GroupInspection;

/// The processes that belong together, for threads. Everything is as for the async
/// [`Group`](crate::Group).
///
/// # Examples
///
/// ```
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # let server = runtime.block_on(lockkeeper_testserver::TestServer::start())?;
/// # let manager = lockkeeper::blocking::ConnectionManager::connect(&server.connect_string())?;
/// use lockkeeper::blocking::Group;
///
/// let group = Group::new(&manager, "/groups/indexers")?;
/// let membership = group.join("indexer-3", "10.0.0.7:8080")?;
/// membership.registered()?;
/// let members = group.members()?;
/// members.sync()?;
/// assert_eq!(members.ids(), ["indexer-3"]);
/// membership.leave()?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub type Group = Blocking<crate::Group>;

/// A membership of a [`Group`]. A drop leaves in the background.
pub type Membership = Blocking<crate::Membership>;

/// The members of a [`Group`], followed.
pub type MembersView = ChildrenView<crate::Member>;

impl Group {
    /// Makes the group at `path`, below the manager's chroot. Sends nothing.
    ///
    /// # Errors
    ///
    /// As [`Group::new`](crate::Group::new).
    pub fn new(manager: &ConnectionManager, path: impl IntoPath) -> Result<Self, Error> {
        Ok(Self::on(manager, crate::Group::new(manager.as_async(), path)?))
    }

    /// The path of the group, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        self.inner.path()
    }

    /// Begins to join with this id, in the background.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`] within an async task. Otherwise as
    /// [`Group::join`](crate::Group::join).
    pub fn join(&self, id: &str, payload: impl Into<Vec<u8>>) -> Result<Membership, Error> {
        self.join_with(id, payload, OnDeletion::Recreate)
    }

    /// As [`join`](Self::join), with a policy for the case that another client deletes the node.
    ///
    /// # Errors
    ///
    /// As [`join`](Self::join).
    pub fn join_with(
        &self,
        id: &str,
        payload: impl Into<Vec<u8>>,
        policy: OnDeletion,
    ) -> Result<Membership, Error> {
        // The task of the membership runs on the thread of the manager.
        let join = async { self.inner.join_with(id, payload, policy) };
        Ok(self.beside(self.block(join)?))
    }

    /// Begins to follow the members, in the background, without being one.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`] within an async task. Otherwise as
    /// [`Group::members`](crate::Group::members).
    pub fn members(&self) -> Result<MembersView, Error> {
        self.members_within(ViewBounds::default())
    }

    /// As [`members`](Self::members), within these bounds.
    ///
    /// # Errors
    ///
    /// As [`members`](Self::members).
    pub fn members_within(&self, bounds: ViewBounds) -> Result<MembersView, Error> {
        let members = async { self.inner.members_within(bounds) };
        Ok(self.beside(self.block(members)?))
    }

    /// Reads the members, with their layout, payload, session and age: a snapshot.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`] within an async task. Otherwise as [`Group::inspect`](crate::Group::inspect).
    pub fn inspect(&self) -> Result<GroupInspection, Error> {
        self.block(self.inner.inspect())
    }
}

impl Membership {
    /// The id of the member.
    #[must_use]
    pub fn id(&self) -> &str {
        self.inner.id()
    }

    /// The path of the node, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        self.inner.path()
    }

    /// Whether the node exists, as far as is known. Never blocks.
    #[must_use]
    pub fn state(&self) -> PresenceState {
        self.inner.state()
    }

    /// The states of the membership, one after the other.
    #[must_use]
    pub fn watch(&self) -> PresenceWatch {
        Watch::new(self.inner.watch(), &self.thread, self.inner.whole_path())
    }

    /// Waits until this process is a member, without a limit of time.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`] within an async task. Otherwise as
    /// [`Membership::registered`](crate::Membership::registered).
    pub fn registered(&self) -> Result<i64, Error> {
        self.block(self.inner.registered())
    }

    /// As [`registered`](Self::registered), for at most `timeout`.
    ///
    /// # Errors
    ///
    /// As [`registered`](Self::registered), and [`Error::Timeout`].
    pub fn registered_timeout(&self, timeout: Duration) -> Result<i64, Error> {
        self.block(self.inner.registered_timeout(timeout))
    }

    /// Replaces the payload, and waits until the node has it.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`] within an async task. Otherwise as
    /// [`Membership::set_payload`](crate::Membership::set_payload).
    pub fn set_payload(&self, payload: impl Into<Vec<u8>>) -> Result<(), Error> {
        self.block(self.inner.set_payload(payload))
    }

    /// Leaves the group, and waits until the server has confirmed this. It works also within an async task.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`] on the manager's own thread; the member leaves in the background.
    /// Otherwise as [`Membership::leave`](crate::Membership::leave).
    pub fn leave(self) -> Result<(), Error> {
        let Self { inner, thread } = self;
        thread.block_always(inner.leave()).ok_or(CannotBlock)?
    }
}

impl MembersView {
    /// The ids of the members in the latest snapshot. Never blocks.
    #[must_use]
    pub fn ids(&self) -> Vec<String> {
        self.inner.ids()
    }
}
