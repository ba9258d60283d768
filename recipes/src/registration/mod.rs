//! An ephemeral node that is created again in each session.
//!
//! Protocol and sources: `docs/protocol.md`, "Registrations and groups". The core has the engine.

use std::fmt::{self, Debug, Formatter};
use std::time::Duration;

use lockkeeper_core::Zxid;
use lockkeeper_core::{
    ConnectionManager, Error, IntoPath, OnDeletion, Presence, PresenceState, Watch, ZnodePath,
};

/// An ephemeral node of this process, which outlives sessions: the counterpart of Curator's
/// `PersistentNode`. [`Membership`](crate::presence::Membership) and `InstanceRegistration` of
/// `lockkeeper::discovery` are registrations, too.
///
/// The node exists as long as this object does, except while there is no session. The current session owns
/// it: a node of another session is never taken for ours. Parents that do not exist are created, as
/// containers.
///
/// # Ordering
///
/// At any time at most one node exists. It has the data of the last [`set_data`](Self::set_data) whose write
/// was confirmed, or of a later call. What another client writes into the node is replaced.
///
/// # Conflicts
///
/// Of two processes with one path one is registered. The other is in the state
/// [`Conflict`](PresenceState::Conflict), changes nothing, and registers when the node is deleted. So a
/// process that was started again waits until the session of its predecessor ends, if that one did not
/// release.
///
/// [`Survey`](crate::survey::Survey) shows the node and its session, as a member of a
/// [`SurveyGroup`](crate::survey::SurveyGroup).
///
/// # Cost
///
/// One write for each session, and one watch. A reconnect costs two reads, and no write.
///
/// # Session loss
///
/// The node ends with its session, and is created again within one round trip of the next session. If the
/// node of the old session still exists then, one transaction replaces it, so that no reader misses the
/// node. A mere reconnect changes nothing.
///
/// # Cancel safety
///
/// A drop deletes the node in the background. [`release`](Self::release) waits for that.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let manager = lockkeeper::ConnectionManager::connect(&server.connect_string()).await?;
/// use lockkeeper::Registration;
///
/// let worker = Registration::register(&manager, "/workers/7", "10.0.0.7:8080")?;
/// worker.registered().await?;
/// worker.set_data("10.0.0.7:8080 draining").await?;
/// worker.release().await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "a registration that is not kept is over at once"]
pub struct Registration<K = PlainKind> {
    pub(crate) presence: Presence,
    #[cfg_attr(not(feature = "discovery"), expect(dead_code, reason = "only a kind of discovery has data"))]
    pub(crate) kind: K,
}

/// A node that is registered for itself.
#[derive(Debug)]
pub struct PlainKind;

impl Registration {
    /// Begins to register the node at `path`, below the manager's chroot, in the background. If another
    /// client deletes the node, it is created again.
    ///
    /// Wait for the node by [`registered`](Self::registered).
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the path is malformed or the root, if the data is too large, or without a tokio
    /// runtime; [`Error::Closed`] after a shutdown has begun.
    pub fn register(
        manager: &ConnectionManager,
        path: impl IntoPath,
        data: impl Into<Vec<u8>>,
    ) -> Result<Self, Error> {
        Self::register_with(manager, path, data, OnDeletion::Recreate)
    }

    /// As [`register`](Self::register), with a policy for the case that another client deletes the node.
    ///
    /// # Errors
    ///
    /// As [`register`](Self::register).
    pub fn register_with(
        manager: &ConnectionManager,
        path: impl IntoPath,
        data: impl Into<Vec<u8>>,
        policy: OnDeletion,
    ) -> Result<Self, Error> {
        Ok(Self { presence: Presence::new(manager, path, data, policy)?, kind: PlainKind })
    }

    /// Gives the node other data, now and in the sessions that follow, and waits until the node has it.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`]: the server refuses the data, and the node keeps what it had. [`Error::Unknown`]
    /// after the manager's operation timeout, for example while another process has the path, or while the
    /// server refuses the node; the data is written as soon as possible, so do not repeat the call.
    /// [`Error::Config`] if the data is too large.
    /// [`PresenceError::Deleted`](lockkeeper_core::PresenceError::Deleted) by [`Error::recipe`], and
    /// [`Error::Closed`] after a shutdown.
    ///
    /// # Session loss
    ///
    /// The data is written in the next session.
    ///
    /// # Cancel safety
    ///
    /// The data is written in the background. Of several calls the last one counts. If the server refuses it
    /// after the call has ended, the node keeps what it had, and only the log has the refusal.
    pub async fn set_data(&self, data: impl Into<Vec<u8>>) -> Result<(), Error> {
        self.presence.set_data(data).await
    }
}

impl<K> Registration<K> {
    /// The path of the node, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        self.presence.path()
    }

    /// Whether the node exists, as far as is known. Sends nothing.
    #[must_use]
    pub fn state(&self) -> PresenceState {
        self.presence.state()
    }

    /// The states of the registration, one after the other.
    #[must_use]
    pub fn watch(&self) -> Watch<PresenceState> {
        self.presence.watch()
    }

    /// Waits until the node exists and is ours, without a limit of time, and returns the id of the
    /// transaction that created it: a view has the node after
    /// [`await_until`](crate::view::View::await_until) that. The wait continues through conflicts and
    /// sessions.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if the server refuses the node (access list, quota); the registration tries
    /// again. [`PresenceError::Deleted`](lockkeeper_core::PresenceError::Deleted) by [`Error::recipe`], and
    /// [`Error::Closed`] after a shutdown.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the registration continues.
    pub async fn registered(&self) -> Result<Zxid, Error> {
        self.presence.registered().await
    }

    /// As [`registered`](Self::registered), for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], which says what is in the way: for example the session that owns the node.
    /// Otherwise as [`registered`](Self::registered).
    ///
    /// # Cancel safety
    ///
    /// As [`registered`](Self::registered).
    pub async fn registered_timeout(&self, timeout: Duration) -> Result<Zxid, Error> {
        self.presence.registered_timeout(timeout).await
    }

    /// Deletes the node, and waits until the server has confirmed this. No error if there is no node.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] after the manager's operation timeout; the delete continues in the background.
    /// A create whose answer was lost has the same result: the node is deleted at once, and again after a
    /// session timeout, because that create may be applied late. [`Error::Unknown`], too, if the session
    /// ended first: the server deletes the node with the session.
    ///
    /// # Session loss
    ///
    /// The node ends with its session, and is not created again.
    ///
    /// # Cancel safety
    ///
    /// The delete continues in the background.
    pub async fn release(self) -> Result<(), Error> {
        self.presence.release().await
    }
}

impl<K> Debug for Registration<K> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        self.presence.fmt(formatter)
    }
}
