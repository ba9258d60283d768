use std::time::Duration;

use lockkeeper_core::{Phase, RecipeError, WholePath};
use thiserror::Error;

/// The reason why a slot was not recorded. [`Error::recipe`](crate::Error::recipe) has it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// Another process has recorded this slot, and nothing of this one was written. That is possible only
    /// after nodes of the schedule were deleted by hand.
    #[error("{path} was recorded by another process, so nothing was written; ask for the next slot")]
    DoneByAnother {
        /// The record of the slot.
        path: WholePath,
    },
}

impl RecipeError for ScheduleError {}

/// The head of the queue waits for a slot.
pub(super) fn waiting_for_slot(millis: u64) -> Phase {
    let left = Duration::from_millis(millis);
    Phase::Recipe(
        format!("waiting at the head of the queue for the next slot, which begins in {left:?}").into(),
    )
}
