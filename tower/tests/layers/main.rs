#![doc = "The layers behind real sockets: axum on one side, a client of a few lines on the other."]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed expectation is a failed test"
)]

mod answer;
mod concurrency;
#[cfg(feature = "metrics")]
mod counted;
mod fixture;
mod leader;
mod lock;
mod log;
mod outage;
mod rate_limit;
mod readiness;
