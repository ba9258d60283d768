//! What is held: its nodes and their guards, its release, and what is done under it.

mod contention_monitor;
mod delete_nodes;
mod detached_node;
mod held;
mod named_node;
mod node;
mod reads;
mod release;
mod revocation;
mod run;
mod transaction;

pub use self::contention_monitor::NodeMonitor;
pub use self::detached_node::DetachedNode;
pub use self::held::Hold;
pub(crate) use self::held::key;
pub use self::named_node::NamedNode;
pub(crate) use self::node::{HeldNode, NodeGuard, NodeRegistration};
pub(crate) use self::reads::Prefetch;
pub use self::reads::{Changes, Read, ReadResult};
pub(crate) use self::revocation::{REVOKE, is_request, without_request};
pub(crate) use self::transaction::{NewNode, NodeTransaction, TxnOutcome};
