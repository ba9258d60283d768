//! A typed map: the children of a path, each with one value.
//!
//! # Layout
//!
//! The entry of a key is the node `<path>/<name>`. The name is the key itself, where ZooKeeper allows that:
//! `key` has the escape. The data is the value in the bytes of the codec, JSON if nothing else is asked for:
//! so an entry without a schema version is that of Curator's `ModeledFramework`. With a schema version above
//! 0 a line `schema <version>` precedes the value: see `stored`.
//!
//! # Protocol
//!
//! Each change is one of a [`Register`](lockkeeper_core::Register), so it is applied once, however often it
//! is sent. A remove is a change as well: it writes a mark in place of the value, and the node is deleted
//! behind that (`sweep`). Who reads meanwhile, or after a process was killed between the two, finds the mark:
//! the key has no entry.
//!
//! Sources: Apache Curator's `ModeledFramework`, `ZPath` and `CachedModeledFramework`.

mod codec;
mod error;
mod format;
#[cfg(any(test, lockkeeper_fuzzing))]
pub(crate) mod fuzzing;
mod handle;
mod key;
mod scan;
mod stored;
mod sweep;
mod view;

#[cfg(feature = "json")]
pub use self::codec::Json;
pub use self::codec::{Plain, TableCodec};
pub use self::error::TableError;
pub use self::handle::{Removal, Table};
pub use self::scan::TableEntry;
pub use self::view::{TableChanges, TableSnapshot, TableView};
