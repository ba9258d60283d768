//! Creates the directory of a queue before there is a contender.

use super::lock_queue::LockQueue;
use crate::config::limits::{self, DIRECTORIES_MAX};
use crate::error::{Error, Operation, Refusal};
use crate::session::{ParentLifetime, make_directory};
use crate::time::boot::BootInstant;
use crate::time::deadline::Deadline;
use crate::wire::{CreateMode, WireError};

impl LockQueue {
    /// Creates the directory as a persistent node with these data, and its missing parents as the first
    /// contender does. Returns an instant before the create was sent, or `None` if the directory exists
    /// already.
    ///
    /// For a queue with a [persistent directory](Self::with_persistent_directory), whose data are the state
    /// of its recipe: of all processes only one creates the directory, so it may set the first state without
    /// a contender. One round trip if the parent exists.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] without an answer: the directory may be created now, or later, as long as it does
    /// not exist. [`Error::Timeout`] without a connection until `deadline`, [`Error::ServersReset`],
    /// [`Error::Refused`] and [`Error::Closed`].
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: the directory may be created.
    pub async fn create_directory(
        &self,
        data: &[u8],
        deadline: Deadline,
    ) -> Result<Option<BootInstant>, Error> {
        limits::check(data.len())?;
        // Those of the contenders that follow.
        limits::check(self.data().len())?;
        let directory = self.full_directory();
        let session = self.manager().session_for_acquire(deadline, directory.as_str()).await?;
        session.mark_used();
        let mut directories_made = 0;
        let failed = loop {
            let sent = session.now();
            let mut reply = session.create(directory.as_str(), data, CreateMode::Persistent);
            let failed = match session.await_reply(&mut reply, deadline).await {
                Ok(_) => {
                    // As for a grant: the state of the recipe may be lost with the servers' data.
                    let reset = session.servers_reset().map(|reset| reset.error(directory.as_str()));
                    return reset.map_or(Ok(Some(sent)), Err);
                }
                Err(WireError::Refused(Refusal::NodeExists)) => return Ok(None),
                Err(failed) => failed,
            };
            let parent = directory.parent().filter(|parent| !parent.is_root());
            let (true, Some(parent)) = (failed == WireError::Refused(Refusal::NoNode), parent) else {
                break failed;
            };
            if directories_made == DIRECTORIES_MAX {
                break failed;
            }
            directories_made += 1;
            let made = make_directory(&session, &parent, ParentLifetime::WhileUsed, deadline).await;
            made.map_err(|error| Error::of_wire(Operation::Create, directory.as_str(), &error, deadline))?;
        };
        Err(Error::of_wire(Operation::Create, directory.as_str(), &failed, deadline))
    }
}
