//! Contenders of several processes that wait for each other.
//!
//! # How it is found
//!
//! 1. The locks below a root are read ([`Survey`](crate::survey::Survey)).
//! 2. The nodes are assigned to *actors* (`actors`). A waiter for a named owner writes into its node which
//!    nodes the owner holds; the nodes of one transaction are of one contender. Where that is unknown, all
//!    nodes of a session are taken together, and what follows is only *possible*.
//! 3. The graph is reduced (`graph`): by the rule that grants holds, [`Rule::blocks`](lockkeeper_core::Rule),
//!    every actor that can be served is struck. The others are stuck.
//! 4. Circles of stuck actors are searched, for people (`circles`).
//! 5. The locks of a circle are read once more (`find`). The circle is reported if the same nodes still wait.
//!
//! Nothing is deleted: the report says how to end the deadlock.

mod actors;
mod circles;
mod find;
mod graph;
#[cfg(test)]
mod graph_test;
mod report;

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

pub use self::actors::Certainty;
pub use self::report::{Deadlock, WaitEdge};

/// The deadlocks among some locks, each seen twice.
///
/// [`Certainty::Found`] is never a false alarm, as long as an owner does nothing else while it waits: an
/// owner that waits in one task, and releases in another one, ends its deadlock by itself. Not every deadlock
/// is found: only a wait for a named [`Owner`](crate::Owner), or for a [`MultiLock`](crate::MultiLock) that
/// is taken at once, says what its contender holds. Other deadlocks are [`Certainty::Possible`].
///
/// Tickets name no holds, because their owner works while they wait. Nor does a mutex that keeps its node,
/// whose waiters change within the process.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let manager = lockkeeper::ConnectionManager::connect(&server.connect_string()).await?;
/// use std::time::Duration;
/// use lockkeeper::inspect::{Deadlocks, Survey};
///
/// let survey = Survey::below(&manager, "/locks").await?;
/// let deadlocks = Deadlocks::among(&manager, survey.locks(), Duration::from_secs(1)).await?;
/// assert!(!deadlocks.is_any_found(), "{deadlocks}");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlocks {
    deadlocks: Vec<Deadlock>,
    pause: Duration,
}

impl Deadlocks {
    /// The deadlocks: the certain ones first.
    #[must_use]
    pub fn all(&self) -> &[Deadlock] {
        &self.deadlocks
    }

    /// The certain deadlocks.
    pub fn found(&self) -> impl Iterator<Item = &Deadlock> {
        self.deadlocks.iter().filter(|deadlock| deadlock.certainty() == Certainty::Found)
    }

    /// Whether there is a certain deadlock.
    #[must_use]
    pub fn is_any_found(&self) -> bool {
        self.found().next().is_some()
    }

    /// The time between the two looks.
    #[must_use]
    pub fn pause(&self) -> Duration {
        self.pause
    }
}

impl Display for Deadlocks {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        if self.deadlocks.is_empty() {
            return formatter.write_str("no deadlock");
        }
        for (index, deadlock) in self.deadlocks.iter().enumerate() {
            formatter.write_str(if index == 0 { "" } else { "\n\n" })?;
            write!(formatter, "{deadlock}")?;
        }
        Ok(())
    }
}
