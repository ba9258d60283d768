#![doc = "The second ring: the real client over sockets against a server that fails on order."]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed expectation is a failed test"
)]

mod between;
mod cancellation;
mod case;
mod closing;
mod court;
mod edges;
mod keeping;
mod limit;
mod many;
mod matrix;
mod mishap;
mod pool;
mod recipe;
mod scenario;
mod site;
mod stage;
mod world;
