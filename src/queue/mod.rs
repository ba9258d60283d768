//! The sequential node: the one primitive under all recipes.
//!
//! A contender creates an ephemeral sequential node in a directory and waits until no node ahead blocks it.
//! [`LockQueue::enqueue`] creates the node, [`Ticket::wait`] waits until it is the head, and the result is a
//! [`Hold`]: with a fencing token, a deadline that the server cannot undercut, and writes that commit only
//! while the hold is valid.
//!
//! # Protocol
//!
//! 1. *Create* `_c_<uuid>-<label>` as an ephemeral sequential node and *list* the directory. Both requests
//!    are sent back to back: the server answers the requests of one session in order, so the list shows every
//!    node ahead. One round trip.
//! 2. *Judge* the list by a [`Rule`]. If no node ahead blocks, the contender holds.
//! 3. Otherwise set a watch by *getData* on the nearest blocker (`exists` on a deleted node would leave a
//!    watch behind) and a watch on the own node. When the only blocker of the list is deleted, the contender
//!    holds without another read. With two or more contenders ahead of a mutex, the waiter first watches the
//!    second nearest. When that one is deleted, the waiter lists the directory and sets the watches of the
//!    first case, while the nearest one still holds.
//! 4. Release by *delete*.
//!
//! After a create without a reply, the contender searches for its node by the UUID, and accepts it only if
//! this session owns it. A waiter whose session expires enters the queue again at the end, in the next
//! session. The manager cleans up after every dropped future.
//!
//! Sources: Apache Curator's lock recipes (layout, protection), ZOOKEEPER-3249 (the counter's end),
//! CURATOR-498 and CURATOR-604 (why the owner is compared), CURATOR-107 (why not `exists`).

mod acquire;
#[cfg(feature = "__simulation")]
mod bench_hooks;
#[cfg(test)]
mod closing_test;
mod create;
mod create_directory;
#[cfg(all(test, feature = "__simulation"))]
mod ended_client_test;
mod exchange;
#[cfg(test)]
mod expired_hold_test;
mod lock_queue;
mod long_wait;
mod lost_create;
#[cfg(test)]
mod lost_head_test;
#[cfg(test)]
mod lost_successor_test;
#[cfg(test)]
mod misuse_test;
mod multi_create;
mod multi_queue;
#[cfg(test)]
mod operation_timeout_test;
#[cfg(test)]
mod other_connection_test;
mod predecessors;
mod queued_node;
#[cfg(test)]
mod replaced_session_test;
mod rule;
#[cfg(test)]
mod rule_test;
#[cfg(test)]
mod server_time_test;
mod step_error;
#[cfg(test)]
mod test_fixture;
mod ticket;
mod wait_local;
mod wait_remote;

pub use self::acquire::AcquireSpan;
pub use self::exchange::{Exchange, ExchangeError, Exchanged};
pub use self::lock_queue::LockQueue;
pub(crate) use self::lost_create::LostCreates;
pub use self::multi_queue::MultiQueue;
#[cfg(test)]
pub(crate) use self::rule::ListJudgement;
pub use self::rule::Rule;
pub(crate) use self::step_error::StepError;
pub use self::ticket::Ticket;
