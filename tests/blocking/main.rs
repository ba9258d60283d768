#![doc = "The blocking face, over sockets, against the embedded server."]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed expectation is a failed test"
)]

mod calls;
mod election;
mod inspections;
mod keeping;
mod lifetime;
mod runtimes;
mod support;
mod threads;
