//! Items that the members of a group share out among themselves.
//!
//! # Layout
//!
//! ```text
//! <path>/members/<id>                        ephemeral: a member, as of a group
//! <path>/items/<item>                        persistent: the item exists
//! <path>/locks/<item>/_c_<uuid>-lock-<seq>   ephemeral: a contender for the item, as of a mutex
//! ```
//!
//! # Protocol
//!
//! Each member follows the members and the items by two views, and computes its share by rendezvous hashing
//! (`hash.rs`). It queues for each item of its share, in the queue of a mutex, and asks the holder by
//! `__REVOKE__` to give the item up. The holder does so when it sees itself that the item belongs to another
//! member. So a member with an older view takes nothing, and an item is worked on until its next owner waits.
//!
//! * `hash`: which member has an item. Pure.
//! * `decide`: what a member does next. Pure.
//! * `task`: sends the engine's requests. `contend`: how an item is acquired.
//! * `handle`, `member`, `item`, `share`: what the application sees. `offers`: the items on their way to it.
//!
//! Sources: `docs/protocol.md`, "Partitions"; kazoo's `recipe/partitioner.py` for what users expect.

mod contend;
mod decide;
mod handle;
mod hash;
mod inspect;
mod item;
mod member;
mod offers;
mod share;
mod task;
#[cfg(test)]
mod tests;

pub use self::handle::{ItemsView, Partition};
pub use self::inspect::{PartitionInspection, PartitionItem};
pub use self::item::{AssignedItem, ItemHold, ReleaseReason};
pub use self::member::PartitionMember;
pub use self::share::PartitionShare;
