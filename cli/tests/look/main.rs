//! The commands that show and that act, as a person uses them: real processes and a terminal, on the embedded
//! server and on Apache ZooKeeper.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed expectation is a failed test"
)]

mod act;
mod check;
mod completion;
mod deadlocks;
mod deploy;
mod fixture;
mod help;
mod inspect;
mod nodes;
mod picture;
mod queue;
mod screen;
mod shop;
mod top;
mod tree;
mod watch;
