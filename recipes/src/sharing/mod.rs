//! Nodes that the guards of one process share: which task holds next, and when a node is deleted.
//!
//! A [mutex](crate::Mutex) has one node at a time. One task has the
//! [`AcquireSlot`](node_sharing::AcquireSlot): it waits in the server's queue for all tasks, or it holds. A
//! [semaphore](crate::Semaphore) has any number of nodes: one contender of the process waits in the server's
//! queue for all tasks ([`SharedEntry`](shared_entry::SharedEntry)), and each node that it is granted is for
//! one of them. The other tasks wait here, in the order of their calls, and have no nodes. When a guard ends,
//! the next task gets its node, as long as [`KnownContenders`](known_contenders::KnownContenders) allow the
//! hand-off. Readers of a [read/write lock](crate::RwLock) hold one node beside each other, as long as no
//! writer waits.
//!
//! [`SharingState`](decide::SharingState) decides, and [`NodeSharing`](node_sharing::NodeSharing) carries out
//! what it decides.

mod common;
mod contention_watcher;
mod decide;
#[cfg(test)]
mod decide_test;
mod entry_reports;
mod hand_off_hold;
mod hand_off_policy;
mod handle;
mod held_here;
mod hold_kind;
mod known_contenders;
mod node_sharing;
mod node_slots;
mod shared_entry;
mod shared_node;
mod slot_wait;
mod tenure;

pub(crate) use self::hand_off_hold::HandOffHold;
pub use self::hand_off_policy::HandOffPolicy;
pub(crate) use self::handle::{Beside, SharingHandle};
pub(crate) use self::held_here::with_held_here;
pub(crate) use self::hold_kind::HoldKind;
pub(crate) use self::shared_entry::{CommonWatch, EntrySlot, SharedEntry};
