//! Nodes that the guards of one process share: which task holds next, and when a node is deleted.
//!
//! A [mutex](crate::Mutex) has one node at a time. One task has the [`AcquireSlot`](acquire_slot::AcquireSlot):
//! it waits in the server's queue for all tasks, or it holds. A [semaphore](crate::Semaphore) has any number
//! of nodes: one contender of the process waits in the server's queue for all tasks
//! ([`SharedEntry`](shared_entry::SharedEntry)), and each node that it is granted is for one of them. The other
//! tasks wait here, in the order of their calls, and have no nodes. When a guard ends, the next task gets its
//! node, as long as [`KnownContenders`](known_contenders::KnownContenders) allow the hand-off.
//!
//! [`SharingState`](decide::SharingState) decides, and [`NodeSharing`](node_sharing::NodeSharing) carries out
//! what it decides.

mod acquire_slot;
mod contention_watcher;
mod decide;
mod hand_off_hold;
mod hand_off_policy;
mod handle;
mod hold_kind;
mod known_contenders;
mod node_sharing;
mod shared_entry;
mod slot_wait;
mod slots;
mod tenure;
#[cfg(test)]
mod tests;

pub use self::hand_off_policy::HandOffPolicy;
pub(crate) use self::handle::SharingHandle;
pub(crate) use self::hold_kind::HoldKind;
pub(crate) use self::node_sharing::CommonWatch;
pub(crate) use self::shared_entry::{EntrySlot, SharedEntry};
