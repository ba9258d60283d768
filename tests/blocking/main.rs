#![doc = "The blocking face, over sockets, against the embedded server."]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed expectation is a failed test"
)]

mod discovery;
mod fleet;
mod inspections;
mod keeping;
mod lifetime;
mod limiters;
mod partitions;
mod registrations;
mod runtimes;
mod support;
mod surveys;
mod threads;
mod values;
mod views;
