//! The node tree: what ZooKeeper stores, without sessions, sockets or a clock.
//!
//! [`Tree`] holds nodes and applies [`Change`]s that were checked before. [`Watches`] turns the [`Effect`] of
//! a change into events. Both are plain data, so a tree can be cloned to make a server that lags behind.

mod acl;
mod change;
mod node;
mod owner;
mod path;
mod stat;
#[expect(clippy::module_inception, reason = "the tree is the main type of the tree module")]
mod tree;
mod watch;
mod watch_list;

pub use acl::{Acl, Identity, Permissions};
pub use change::{Change, Effect};
pub use node::Node;
pub use owner::Owner;
pub use path::{parent, validate};
pub use stat::Stat;
pub use tree::Tree;
pub use watch::{EventKind, WatchEvent, WatchKind, WatchMode, Watches};
