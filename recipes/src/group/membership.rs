use lockkeeper_core::Error;

use crate::registration::Registration;

/// A membership of a [`Group`](crate::Group), which outlives sessions: a
/// [`Registration`](crate::Registration) below the path of the group. A drop leaves in the background.
///
/// # Methods
///
/// Those of every [`Registration`](crate::Registration), and [`id`](Self::id).
pub type Membership = Registration<MemberKind>;

/// A member of a group.
#[derive(Debug)]
pub struct MemberKind;

impl Membership {
    /// The id of the member.
    #[must_use]
    pub fn id(&self) -> &str {
        self.path().name()
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

    /// Leaves the group, and waits until the server has confirmed this. The same as
    /// [`release`](Self::release).
    ///
    /// # Errors
    ///
    /// As [`release`](Self::release).
    ///
    /// # Cancel safety
    ///
    /// The member leaves in the background.
    pub async fn leave(self) -> Result<(), Error> {
        self.release().await
    }
}
