#![doc = "lockkeeper-redis on real servers."]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed expectation is a failed test"
)]

mod bad_input;
mod cancellation;
mod fenced;
mod fixture;
mod limits;
mod links;
mod locks;
mod permits;
mod processes;
mod promises;
mod python;
mod scripts;
mod servers;
mod starts;
