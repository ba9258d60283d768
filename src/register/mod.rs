//! A register: one node whose changes are applied exactly once.
//!
//! # Protocol
//!
//! A change is decided from the data of the node, and written on condition that the node still has the
//! version that was read. The same transaction writes the *writer node*: an ephemeral child of the node that
//! belongs to this register of this session. Every attempt of one change takes the writer node from one
//! version to the next, so the servers apply at most one of them. After a lost answer the next attempt is
//! refused if an earlier one was applied, and the writer node names the attempt that was applied.
//!
//! The version alone does not tell a node from one that was created in its place. The writer node does: it
//! ends with its parent. So the node is read behind the create of the writer node.
//!
//! An attempt to create the node writes a writer node *beside* it, in the same directory: one below the node
//! would be deleted with it, and the outcome with both. Before the call ends with an outcome, an attempt was
//! applied or all of them are fenced off, so none of them creates the node later.
//!
//! The bytes of the node are those of the recipe, and clients that know nothing of the writer node, such as
//! Curator's, change the same node by its version.
//!
//! Sources: ZOOKEEPER-22 and CURATOR-584 (a conditional write whose answer is lost is refused when it is
//! repeated), ZOOKEEPER-4743 (versions that overflow).

mod attempt;
mod batch;
mod creation;
mod decide;
mod decision;
mod doubts;
#[cfg(any(test, lockkeeper_fuzzing))]
pub(crate) mod fuzzing;
mod handle;
mod inspect;
#[cfg(test)]
mod inspect_test;
mod memory;
mod requests;
mod send;
mod worker;
#[cfg(test)]
mod worker_test;
mod write_contention;
mod writer;

pub use self::decide::{Change, Current};
pub use self::handle::Register;
pub use self::inspect::RegisterInfo;
