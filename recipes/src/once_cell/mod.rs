//! A value that one process of the fleet computes, and all others read.
//!
//! # Protocol
//!
//! The value is a persistent node, `<path>/value`, whose data is the raw value. A process that finds no value
//! enters a queue, an inner mutex at `<path>/locks`. The head of the queue reads once more, runs its
//! initialiser, and creates the value in one transaction that checks the node of its hold. Each waiter also
//! watches the children of `<path>`, so the new value wakes all of them at once.
//!
//! # Why there is one value, and never a part of one
//!
//! The server creates a node once, with all its data. The head reads after it was granted, so it sees the
//! value of any earlier head. An initialiser that lost its hold creates nothing, because its node does not
//! exist. A crash before the transaction leaves no trace but the node of the queue, which ends with the
//! session.

mod error;
mod handle;
mod init;
mod inspect;

pub use self::error::InitError;
pub use self::handle::OnceCell;
