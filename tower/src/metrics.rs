//! Metrics of the layers, through the facade crate `metrics`. Feature `metrics`.
//!
//! | metric | kind | labels | what |
//! |---|---|---|---|
//! | [`HTTP_REQUESTS_TOTAL`] | counter | `layer`, `outcome` | Requests that a layer has decided on |
//!
//! * `layer`: `rate_limit`, `concurrency`, `lock`, `leader`.
//! * `outcome`: `passed`; `refused`, over the limit, no permit or no lock in time, or not the leader;
//!   `redirected` to the leader; `undecided_refused` and `undecided_passed`, without an answer of ZooKeeper;
//!   `bad_key`, a key that can be none; `lost`, a request that had passed, and whose hold was lost before
//!   there was a response.

use metrics::{Unit, counter, describe_counter};

/// Requests that a layer has decided on; by `layer` and `outcome`.
pub const HTTP_REQUESTS_TOTAL: &str = "lockkeeper_http_requests_total";

/// The names of all metrics.
pub const ALL: [&str; 1] = [HTTP_REQUESTS_TOTAL];

/// Describes the metrics to the recorder, for those that show descriptions. Call it after the recorder is
/// installed.
pub fn describe() {
    describe_counter!(HTTP_REQUESTS_TOTAL, Unit::Count, "Requests that a layer has decided on.");
}

pub(crate) fn requests(layer: &'static str, outcome: &'static str, count: u64) {
    counter!(HTTP_REQUESTS_TOTAL, "layer" => layer, "outcome" => outcome).increment(count);
}
