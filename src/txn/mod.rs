//! Transactions, which may rest on holds.

mod commit;
mod once;
mod prepared;
mod transaction;

pub use self::once::{Once, OnceTxn};
pub(crate) use self::transaction::of_several_managers;
pub use self::transaction::{Txn, TxnResult};
