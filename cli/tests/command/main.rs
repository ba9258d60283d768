//! The command as a person uses it: real processes and signals, on the embedded server and on Apache
//! ZooKeeper.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed expectation is a failed test"
)]

mod doctor;
mod fixture;
mod lease;
mod log;
mod nested;
mod once;
mod output;
mod processes;
mod run;
mod serve;
mod settings;
mod terminal;
mod thaw;
mod usage;
mod waiting;
