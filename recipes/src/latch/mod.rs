//! A latch that opens after a number of counts.
//!
//! # Protocol
//!
//! The data of the node is the count that is left and the number of the generation, as `3 0`. A node that
//! does not exist has the whole count and generation 0. A count is a change of a
//! [`Register`](lockkeeper_core::Register), so each call counts once, however often it is sent; the counts
//! that wait in one process are one transaction. A waiter has a view of the node.

mod handle;
mod state;

pub use self::handle::CountDownLatch;
pub use self::state::LatchState;
