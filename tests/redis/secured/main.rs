#![doc = "lockkeeper-redis with TLS, and on a cluster: on Debian's redis-server, which has both."]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed expectation is a failed test"
)]

#[path = "../../secured/certificates.rs"]
#[expect(dead_code, reason = "a part of it is for ZooKeeper")]
mod certificates;
mod cluster;
#[path = "../it/fixture.rs"]
#[expect(dead_code, reason = "a part of it is for the tests without TLS")]
mod fixture;
mod tls;
