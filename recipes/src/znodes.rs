//! Nodes beside the recipes, and the parts of transactions.

#[doc(inline)]
pub use lockkeeper_core::{
    CreateMode, CreateOptions, CreatedNode, DeletedNodes, IntoPath, Once, OnceTxn, Stat, TxnResult, Version,
    Znodes, Zxid,
};
