#![doc = "TLS and SASL against real servers, which need Debian's package `zookeeper`."]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed expectation is a failed test"
)]

mod certificates;
mod sasl;
mod support;
mod tls;
