//! A node that the guards of one process share: which task holds next, and when the node is deleted.
//!
//! One task at a time has the [`AcquireSlot`](node_sharing::AcquireSlot): it waits in the server's queue for
//! all tasks, or it holds. The other tasks wait here, in the order of their calls, and have no nodes. When a
//! guard ends, the next task gets its node, as long as [`KnownContenders`](known_contenders::KnownContenders)
//! allow the hand-off.
//!
//! [`SharingState`](decide::SharingState) decides, and [`NodeSharing`](node_sharing::NodeSharing) carries out
//! what it decides.

mod contention_watcher;
mod decide;
mod hand_off_hold;
mod handle;
mod known_contenders;
mod node_sharing;
mod slot_wait;
mod tenure;
#[cfg(test)]
mod tests;

pub(super) use self::hand_off_hold::HandOffHold;
pub(super) use self::handle::SharingHandle;
