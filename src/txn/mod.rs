//! Transactions that rest on a hold.

mod commit;
mod once;
mod prepared;
mod transaction;

pub use self::once::{Once, OnceTxn};
pub use self::transaction::{Txn, TxnResult};
