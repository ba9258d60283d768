use std::time::Duration;

use lockkeeper_core::{ConfigError, ConnectionManager, Deadline, Error, IntoPath, Rendezvous, ZnodePath};

use super::inside::Inside;
use crate::participant_id::check_length;

/// A barrier that members enter together, when enough of them are there, and leave together.
///
/// A clone is cheap. The path belongs to the barrier alone: each ephemeral node below it counts as a member.
/// A persistent node, as tools that copy or restore trees leave it, counts as none: it is logged, and
/// [`inspect`](Self::inspect) shows it.
///
/// # Ordering
///
/// No member enters before `count` members of its round exist at one instant. A member that comes later than
/// the opening waits for the next round, which begins when no member of this one exists. So give every round
/// the same count, and let no more members come than that.
///
/// # When not to use it
///
/// A member that crashes inside counts as one that has left: use the guard to notice the own loss, and a view
/// or a [`Counter`](crate::Counter) if the work of a round must be complete.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let manager = lockkeeper::ConnectionManager::connect(&server.connect_string()).await?;
/// use lockkeeper::DoubleBarrier;
///
/// let (left, right) = (
///     DoubleBarrier::new(&manager, "/barriers/step", 2)?.with_id("left")?,
///     DoubleBarrier::new(&manager, "/barriers/step", 2)?.with_id("right")?,
/// );
/// let (in_left, in_right) = tokio::try_join!(left.enter(), right.enter())?;
/// let worked = in_left.run(async { "together" }).await?; // dropped if the membership is lost
/// assert_eq!(worked, "together");
/// tokio::try_join!(in_left.leave(), in_right.leave())?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct DoubleBarrier {
    pub(super) rendezvous: Rendezvous,
    pub(super) count: u32,
}

impl DoubleBarrier {
    /// Makes the barrier of `count` members at `path`, below the manager's chroot. Sends nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the path is malformed or the root, or if `count` is zero. A count of more than
    /// some thousands, for which one transaction cannot name all members, is refused by
    /// [`enter`](Self::enter).
    pub fn new(manager: &ConnectionManager, path: impl IntoPath, count: u32) -> Result<Self, Error> {
        if count == 0 {
            let advice = "give a round one or more members";
            return Err(ConfigError::Setting { name: "count", value: "0".to_owned(), advice }.into());
        }
        let rendezvous = Rendezvous::new(manager, path)?.with_metric_name("double_barrier");
        Ok(Self { rendezvous, count })
    }

    /// Names this member, for [`inspect`](Self::inspect). Default: the manager's node data, which has the
    /// host and the process id.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the id is longer than 1024 bytes.
    pub fn with_id(self, id: &str) -> Result<Self, Error> {
        check_length(id)?;
        Ok(Self { rendezvous: self.rendezvous.with_node_data(id), ..self })
    }

    /// The path of the barrier, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        self.rendezvous.path()
    }

    /// How many members a round has.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Waits until enough members are there, without a limit of time.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] if the session ended, or another client deleted the node of this member, during the
    /// wait: the round may have begun with this member, and counts it as one that has left. Enter again to
    /// take part in the next one. [`Error::Refused`] (access list, quota), [`Error::Closed`] after a shutdown
    /// has begun.
    ///
    /// # Session loss
    ///
    /// See [`Error::Lost`] above. Before the node of the member exists, the call continues in the next
    /// session.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe at every await: no node is left behind. If the round has begun, this member counts as one
    /// that has left.
    pub async fn enter(&self) -> Result<Inside, Error> {
        Ok(Inside::new(self.rendezvous.enter(self.count, Deadline::never()).await?))
    }

    /// As [`enter`](Self::enter), for at most `timeout`. With a `timeout` of zero, it waits for answers
    /// alone.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], which says how many members were missing. Otherwise as [`enter`](Self::enter).
    ///
    /// # Session loss
    ///
    /// As [`enter`](Self::enter).
    ///
    /// # Cancel safety
    ///
    /// As [`enter`](Self::enter).
    pub async fn enter_timeout(&self, timeout: Duration) -> Result<Inside, Error> {
        Ok(Inside::new(self.rendezvous.enter(self.count, Deadline::after(timeout)).await?))
    }
}
