//! The token of a request: a header, its sender and its receiver, as layers of [tower](https://docs.rs/tower)
//! for requests of [http](https://docs.rs/http) 1.
//!
//! The header is `Fencing-Token`, and its value the 39 digits of
//! [`FencingToken::to_decimal`](lockkeeper_lock::FencingToken::to_decimal), with the generation in front. So
//! a receiver in any language compares two values as texts. Fewer leading zeros are accepted.
//!
//! | the receiver answers | when |
//! |---|---|
//! | 409 Conflict, with the newer token in `Fencing-Token` | the token is stale. The request conflicts with the state of the resource, and its sender can resolve that: it acquires the lock again. (412 is for the conditions of the sender's own, such as `If-Match`, and 403 would not be a matter of time) |
//! | 400 Bad Request | the header is no token, or is there twice, or the resource has no valid name |
//! | 428 Precondition Required | the header is missing |
//! | 503 Service Unavailable | the store did not decide: the first line of a row of them is in the log |

#[cfg(any(test, lockkeeper_fuzzing))]
pub(crate) mod fuzzing;
mod header;
mod memory;
mod receiver;
mod sender;
#[cfg(feature = "__sql")]
mod sql_store;
mod store;
mod undecided;
#[cfg(feature = "zookeeper")]
mod zookeeper_store;

pub use self::header::{FENCING_TOKEN, header_value};
pub use self::memory::MemoryStore;
pub use self::receiver::{FenceLayer, FenceService};
pub use self::sender::{FencingTokenLayer, FencingTokenService};
#[cfg(feature = "__sql")]
pub use self::sql_store::SqlStore;
pub use self::store::FenceStore;
#[cfg(feature = "zookeeper")]
pub use self::zookeeper_store::ZooKeeperStore;
