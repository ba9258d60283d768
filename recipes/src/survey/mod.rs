//! Every lock, election and group below a root.

mod found;
mod layout;
mod search;

pub use self::found::{Survey, SurveyGroup};
pub(crate) use self::search::inspect_each;
