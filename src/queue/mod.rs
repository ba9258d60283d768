//! The sequential node: the one primitive under all recipes.
//!
//! A contender creates an ephemeral node with a number in the directory of what it wants, and waits until no node
//! in front blocks it. [`LockQueue::enqueue`] takes a place, [`Ticket::wait`] waits in it, and a [`Hold`] is what
//! comes out: a hold with a fencing token, a deadline the server cannot undercut, and writes that only commit while
//! the hold stands.
//!
//! # Protocol
//!
//! 1. *Create* `_c_<uuid>-<label>` as an ephemeral sequential node and *list* the directory, sent back to back: one
//!    session's requests are answered in order, so the list shows every node in front. One round trip.
//! 2. *Judge* the list by a [`Rule`]. Nothing in front that blocks: held.
//! 3. Else set a watch by *getData* on the nearest blocker (an `exists` on a node that is gone would leave a watch
//!    behind) and on the own node. When the only blocker of the list goes: held, with no further read. With two or more
//!    in front of a mutex, the watch is on the last but one at first: when that goes, the line is read and the watches
//!    of the first case are set, while the last one holds.
//! 4. Release by *delete*.
//!
//! A create without an answer is looked for by its UUID, and taken for ours only if this session owns it. A wait
//! whose session expires goes on at the end of the line in the next session. Whatever is dropped on the way is
//! cleaned up by the manager.
//!
//! Sources: Apache Curator's lock recipes (layout, protection), ZOOKEEPER-3249 (the counter's end), CURATOR-498 and
//! CURATOR-604 (why the owner is compared), CURATOR-107 (why not `exists`).

mod acquire;
#[cfg(feature = "__simulation")]
mod bench_hooks;
mod call_telemetry;
mod create;
mod create_guard;
mod delete_nodes;
mod detached_node;
mod directory;
mod exchange;
mod fast_path;
mod held_node;
mod hold;
mod inspect;
mod local_queue;
mod local_queues;
mod lock_queue;
mod lost_create;
mod missing_czxid;
#[cfg(test)]
mod misuse_test;
mod multi_create;
mod multi_queue;
mod node_monitor;
mod node_transaction;
#[cfg(test)]
mod operation_timeout_test;
mod pending_watch;
mod predecessors;
mod prefetch;
mod queued_node;
mod registration;
mod revocation;
mod rule;
mod step_error;
mod ticket;
mod wait_local;
mod wait_remote;

pub use self::acquire::AcquireSpan;
pub use self::detached_node::DetachedNode;
pub(crate) use self::directory::{ParentLifetime, make_directory};
pub use self::exchange::{Exchange, ExchangeError, Exchanged};
pub use self::hold::Hold;
pub(crate) use self::inspect::read_node;
pub use self::inspect::{AgeClock, ContenderInfo, Identity, Role};
pub use self::lock_queue::LockQueue;
pub use self::multi_queue::MultiQueue;
pub use self::node_monitor::NodeMonitor;
pub use self::prefetch::{Changes, Read, ReadResult};
pub(crate) use self::revocation::REVOKE;
pub use self::rule::Rule;
pub use self::ticket::Ticket;
pub use crate::znode::name::{Kind, LABEL_BYTES_MAX, Label, LabelError, NodeName};
