//! A rate limiter over all processes.
//!
//! The contenders are an exclusive queue at the limiter's path, one for each process. The data of that
//! directory is the window: the starts that count, each with the time of its record. Only the head of the
//! queue writes it, by a transaction that checks the head's own node. So a head that was replaced writes
//! nothing.
//!
//! The first starts are recorded by the create of the directory, which needs no contender: the directory did
//! not exist, so nothing was recorded.
//!
//! The time of the newest starts is the time of the write that recorded them, by the servers' clock. An
//! estimate of this time decides when the head writes. The answer shows the true time: if there was no room
//! yet, the starts admit nobody, and the head writes the window without them. So no local clock admits.
//!
//! # Why a crash cannot admit too many
//!
//! A start is recorded before the caller learns of it. Let `c` be the time of that transaction. The
//! [`Admission`] is fresh only until `grace` after its request was sent, which is before `c + grace`. So a
//! caller that checks it starts between `c` and `c + grace`. The start counts until the servers' clock is
//! past `c + window + grace`, and the start that takes its room is recorded after that. So the two starts are
//! a window apart.
//!
//! A write without an answer may be committed late. It names the version that it replaces, so no other write
//! is lost by it. Its starts count, and admit the calls that still wait if the next read shows them.

mod admission;
mod ahead;
mod begin;
mod decide;
mod delete;
mod encoding;
mod error;
mod fresh;
#[cfg(any(test, lockkeeper_fuzzing))]
pub(crate) mod fuzzing;
mod handle;
mod head;
mod inspect;
mod keyed;
mod line;
mod numbers;
mod queue;
mod sweep;
mod table;
mod worker;

pub use self::admission::{Admission, TryAdmit};
pub use self::error::RateLimiterError;
pub use self::handle::RateLimiter;
pub use self::keyed::KeyedRateLimiter;
use self::queue::limiter_queue;
