//! Nodes beside the recipes, and the parts of transactions.

#[doc(inline)]
pub use lockkeeper_core::{ANY_VERSION, CreateMode, IntoPath, Once, OnceTxn, Stat, TxnResult, Znodes};
