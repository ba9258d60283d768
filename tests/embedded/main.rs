#![doc = "The second ring: the real client over sockets against a server that fails on order."]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed expectation is a failed test"
)]

mod between;
mod bounds;
mod cancellation;
mod case;
mod closing;
mod edges;
mod election;
mod fixture;
mod injected_fault;
mod injection_point;
mod keeping;
mod limit;
mod many;
mod matrix;
mod oracle;
mod outcomes;
mod paths;
mod pool;
mod scenario;
mod server_fixture;
