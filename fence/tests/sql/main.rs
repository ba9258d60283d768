#![doc = "The fence on PostgreSQL and SQLite, and on a MySQL that the environment names."]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed expectation is a failed test"
)]

mod database;
mod histories;
mod holder;
mod input;
mod isolation;
mod link;
mod postgres;
mod rule;
mod session_end;
