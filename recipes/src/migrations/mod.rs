//! Named steps that change what is stored, each once over the whole fleet.
//!
//! # Layout
//!
//! The record of the step at position `n` is the persistent node `<path>/done/<n>`, with four digits or more,
//! and `<version> <name>` as data. `<path>/lock` is a mutex.
//!
//! # Protocol
//!
//! Under the mutex the records are compared with the steps. Each step that has no record is one transaction:
//! the check of the hold, the record, and the writes of the step. The record is the
//! [marker](lockkeeper_core::Txn::once) of that transaction, so a step whose answer was lost is found to be
//! done, by this process or by the next one.
//!
//! Sources: Apache Curator's `MigrationManager`.

mod error;
#[cfg(any(test, lockkeeper_fuzzing))]
pub(crate) mod fuzzing;
mod handle;
mod record;
mod step;

pub use self::error::MigrationError;
pub use self::handle::{Migrations, StepsDone};
