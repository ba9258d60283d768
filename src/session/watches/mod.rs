//! What a session watches and reads at once, and how much of both it may.

mod node_watch;
mod read_window;
mod tree_watches;
mod watch_budget;

use std::sync::Arc;

pub(crate) use self::node_watch::NodeWatch;
pub(crate) use self::read_window::{ReadRoom, ReadWindow};
pub(crate) use self::tree_watches::PathWatch;
use self::tree_watches::{TreeWatches, UnansweredWatch};
pub(crate) use self::watch_budget::{Reservation, WatchBudget};

/// The watches of a session, and its reads in flight.
#[derive(Debug, Default)]
pub(super) struct Watches {
    budget: WatchBudget,
    trees: Arc<TreeWatches>,
    read_window: ReadWindow,
}

impl Watches {
    pub(super) fn budget(&self) -> &WatchBudget {
        &self.budget
    }

    pub(super) fn read_window(&self) -> &ReadWindow {
        &self.read_window
    }

    /// Room for the watch of a path, to be [sent](UnansweredWatch::send). `None` without room.
    pub(super) fn reserve_path(&self, path: &str) -> Option<UnansweredWatch> {
        Some(UnansweredWatch::new(Arc::clone(&self.trees), self.budget.reserve(path)?))
    }
}
