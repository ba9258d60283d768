//! The errors. The errors of an area are in that area; the ones here collect them, or belong to several
//! areas.

mod connect;
mod held_here;
mod kind;
mod loss;
mod operation_error;
mod outcome;
mod phase;
pub(crate) mod recipe;
mod refusal;
pub(crate) mod release;

pub use self::connect::ConnectError;
pub use self::held_here::HeldHere;
pub use self::loss::{LossReason, Lost};
pub use self::operation_error::{Error, TxnError};
pub use self::outcome::Outcome;
pub use self::phase::Phase;
pub use self::refusal::{Operation, Refusal};
pub use crate::config::error::ConfigError;
