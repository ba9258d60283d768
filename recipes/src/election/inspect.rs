use lockkeeper_core::{Error, Role};

use super::handle::Election;
use crate::inspection::{InspectedRecipe, Inspection};

const RECIPE: InspectedRecipe = InspectedRecipe { name: "election", counted: None };

impl Election {
    /// Returns the ids of all participants in the order of the queue, the leader first: a snapshot, as
    /// [`inspect`](Self::inspect). A participant that campaigns more than once is in it more than once.
    ///
    /// The ids are read from the nodes. Bytes that are not UTF-8 are replaced, and an id that this client may
    /// not read is empty. That of a participant that was asked to resign ([`Revoker`](crate::Revoker)) is
    /// `__REVOKE__`; in the layout of Curator's `LeaderSelector` the id follows, if it has the form of an
    /// [`Identity`](lockkeeper_core::Identity). A persistent node belongs to no participant, and is left out;
    /// while it is ahead of all ([`inspect`](Self::inspect) shows it), nobody leads.
    ///
    /// # Errors
    ///
    /// As [`inspect`](Self::inspect).
    ///
    /// # Cancel safety
    ///
    /// As [`inspect`](Self::inspect).
    pub async fn candidates(&self) -> Result<Vec<String>, Error> {
        let contenders = self.queue.inspect().await?;
        let candidates = contenders.iter().filter(|of| matches!(of.role(), Role::Holder | Role::Waiter));
        let candidates = candidates.filter(|of| of.session() != 0);
        Ok(candidates.map(|of| id(of.data())).collect())
    }

    /// Returns the leader and the other candidates, with their ids and ages: a snapshot, see [`Inspection`].
    /// It enters no queue, and needs only the right to read. Candidates of Curator are shown as well.
    ///
    /// # Errors
    ///
    /// As [`LockQueue::inspect`](lockkeeper_core::LockQueue::inspect): [`Error::Timeout`], [`Error::Refused`]
    /// (no right to list), [`Error::NoAnswer`] (the link broke: call again) and [`Error::Closed`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the call changes nothing.
    pub async fn inspect(&self) -> Result<Inspection, Error> {
        let contenders = self.queue.inspect().await?;
        Ok(Inspection::of(RECIPE, self.queue.manager(), self.path(), None, contenders))
    }
}

/// The id in the data of a node.
pub(super) fn id(data: Option<&[u8]>) -> String {
    String::from_utf8_lossy(data.unwrap_or_default()).into_owned()
}
