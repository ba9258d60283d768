#![doc = "Integration tests. Those on real servers need Debian's package `zookeeper`."]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed expectation is a failed test"
)]

mod abandoned;
mod access;
mod bad_input;
mod cancellation;
mod counter;
mod every_kind;
mod exclusion;
mod harness_between;
mod harness_proxy;
mod harness_servers;
mod inspect;
mod interop;
mod lease;
mod loss;
mod moving;
mod multi_lock;
mod mutex;
mod node_bytes;
mod numbers;
mod once_cell;
mod partition;
mod rate_limiter;
mod recovery;
mod reentrant;
mod registration;
mod restore;
mod revoke;
mod rw;
mod schedule;
mod semaphore;
mod sessions;
mod shutdown;
mod stored;
mod support;
mod thousands;
mod view;
mod work_queue;
