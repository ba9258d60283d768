#![doc = "TLS and SASL, and the real server for users. Most need Debian's package `zookeeper`."]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed expectation is a failed test"
)]

mod certificates;
mod embedded;
mod sasl;
mod support;
mod tls;
mod user_harness;
