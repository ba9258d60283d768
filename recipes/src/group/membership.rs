use std::fmt::{self, Debug, Formatter};
use std::time::Duration;

use lockkeeper_core::{Error, Presence, PresenceState, PresenceWatch, ZnodePath};

/// A membership of a [`Group`](crate::Group), which outlives sessions: a
/// [`Registration`](crate::Registration) below the path of the group. A drop leaves in the background.
#[must_use = "a membership that is not kept is over at once"]
pub struct Membership {
    presence: Presence,
}

impl Membership {
    pub(super) fn new(presence: Presence) -> Self {
        Self { presence }
    }

    /// The id of the member.
    #[must_use]
    pub fn id(&self) -> &str {
        self.presence.path().name()
    }

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

    /// The states of the membership, one after the other.
    #[must_use]
    pub fn watch(&self) -> PresenceWatch {
        self.presence.watch()
    }

    /// Waits until this process is a member, without a limit of time, and returns the id of the transaction
    /// that created the node: a [view](crate::Group::members) has the member after
    /// [`await_until`](crate::view::View::await_until) that.
    ///
    /// # Errors
    ///
    /// As [`Registration::registered`](crate::Registration::registered).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the membership continues.
    pub async fn registered(&self) -> Result<i64, Error> {
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
    pub async fn registered_timeout(&self, timeout: Duration) -> Result<i64, Error> {
        self.presence.registered_timeout(timeout).await
    }

    /// Replaces the payload, now and in the sessions that follow, and waits until the node has it.
    ///
    /// # Errors
    ///
    /// As [`Registration::set_data`](crate::Registration::set_data).
    ///
    /// # Cancel safety
    ///
    /// The payload is written in the background.
    pub async fn set_payload(&self, payload: impl Into<Vec<u8>>) -> Result<(), Error> {
        self.presence.set_data(payload).await
    }

    /// Leaves the group, and waits until the server has confirmed this.
    ///
    /// # Errors
    ///
    /// As [`Registration::release`](crate::Registration::release).
    ///
    /// # Cancel safety
    ///
    /// The member leaves in the background.
    pub async fn leave(self) -> Result<(), Error> {
        self.presence.release().await
    }
}

impl Debug for Membership {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        self.presence.fmt(formatter)
    }
}
