//! Every lock, election, group and work queue below a root.

mod found;
#[cfg(any(test, lockkeeper_fuzzing))]
pub(crate) mod fuzzing;
mod layout;
mod queue;
mod search;

pub use self::found::{Survey, SurveyGroup, SurveyQueue};
pub(crate) use self::search::inspect_each;
