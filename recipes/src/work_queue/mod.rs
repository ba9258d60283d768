//! A queue of items, each of which is done exactly once.
//!
//! # Protocol
//!
//! An item is a persistent node, `<path>/items/<priority>-<number>`. A *worker* is an ephemeral node in
//! `<path>/workers`, with a unique name. A worker claims an item by a transaction that checks the worker's
//! node, and writes its name into the data of the item, if the item has the version that was read. So the
//! item is claimed as long as that worker's node exists. One more transaction checks the worker's node,
//! deletes the item, and applies the writes of the work. The worker then claims its next item.
//!
//! Each transaction also writes the worker's *record*, a persistent node of its own, at the version that the
//! worker knows. So a transaction whose answer is lost is applied at most once however often it is sent, and
//! the version of the record tells whether it was. After the end of the session, one more write of the record
//! decides: if it is applied, the transaction never will be.
//!
//! # Why no item is lost or done twice
//!
//! An item ends only with the transaction that deletes it, and that one is applied only while the worker's
//! node exists. Another worker claims the item only after it has read the name of the claim in the item, and
//! then that no node of this name exists. Names of workers are never used again. The version of the item ends
//! the race of two workers that both find it free.
//!
//! # Shards
//!
//! The items are in directories of a bounded size, the *shards*: `<path>/items`, `<path>/items-0000000001`
//! and so on. Only the last one takes puts: it is open as long as its data was never written, and each put
//! checks that in its transaction. A put that has no room writes the data and creates the next shard, in one
//! transaction. So a shard is closed once and for ever, whatever is applied late: the list of a closed shard
//! has every item that it will ever have, and an empty one is deleted without a race.
//!
//! # The nodes of other clients
//!
//! In the layout of Curator or kazoo, the claim is the one of that client: an ephemeral node with the name of
//! the item. The same transaction creates it and writes the item, so that the version of the item is that of
//! this claim alone. The end of the item deletes both at the versions that the claim has made. The worker and
//! its record are as above.
//!
//! Sources: kazoo's `LockingQueue`, whose claim is an ephemeral node with the name of the item: a delete that
//! is sent twice there may delete the claim of another taker. Curator's `DistributedQueue` with `lockPath`
//! deletes the item without a check of its lock (CURATOR-605).

mod candidates;
mod claim;
mod curator_item;
mod decide;
mod error;
mod free_items;
#[cfg(any(test, lockkeeper_fuzzing))]
pub(crate) mod fuzzing;
mod handle;
mod inspect;
mod item;
mod item_claim;
mod item_layout;
mod look;
mod name;
mod of_peers;
mod put;
mod read_ahead;
mod read_item;
mod record;
mod shard_number;
mod shards;
mod shared;
mod stored;
mod sweep;
mod take;
#[cfg(test)]
mod tests;
mod worker;

pub use self::error::WorkQueueError;
pub use self::handle::WorkQueue;
pub use self::inspect::{FailedItem, ItemInfo, ItemState, WorkQueueInspection};
pub use self::item::WorkItem;
pub(crate) use self::item_layout::is_own_name;
pub(crate) use self::name::{FAILED, RECORDS, WORKERS};
pub(crate) use self::shard_number::{ITEMS, ShardNumber};
