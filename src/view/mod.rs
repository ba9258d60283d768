//! Views: copies of a node, of its children or of a tree that follow the server.
//!
//! * `decide` (pure): events and answers in, reads and differences out. `node_map`: the nodes by path.
//! * `task`: one connection after the other, it watches, reads, and publishes. `reads`: its requests in
//!   flight. `stop` (pure): why a connection is left, and the pause behind that.
//! * `hub`: the latest snapshot, and the readers of the differences (`changes`).
//! * `handle`: what recipes have.
//!
//! # Protocol
//!
//! A persistent watch is set first: on the node alone, or a recursive one on a tree. Then every node is
//! compared with the server, level by level: its data is read, and its children are listed if its
//! pzxid or their number differs. A node is the same if its creation and modification zxids are the same, so
//! a node that was deleted and created again differs. After that, each event causes a read of its node. On
//! every new connection all of this begins again, because a server does not send the events that a
//! persistent watch missed (ZOOKEEPER-4698).

mod bounds;
mod changes;
mod decide;
mod error;
mod follow;
mod followed;
mod handle;
mod hub;
mod listed_children;
mod node;
mod node_map;
mod reads;
mod scope;
mod snapshot;
mod stop;
mod task;
#[cfg(test)]
mod tests;
mod tree_scope;
mod visit;

pub use self::bounds::{Exceeded, ViewBounds};
pub use self::changes::{Difference, ViewChange, ViewChanges};
pub use self::error::ViewError;
pub use self::follow::Follow;
pub use self::handle::{View, ViewPoint};
pub use self::node::{DecodeError, DecodeFailure, ViewNode};
pub use self::scope::ViewScope;
pub use self::snapshot::{Snapshot, ViewState};
pub use self::tree_scope::TreeScope;
