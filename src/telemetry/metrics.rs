//! The metrics, with the feature `metrics`: sent through the facade crate
//! [`metrics`](https://docs.rs/metrics) to the recorder that the application installs. Without a recorder
//! nothing is recorded.
//!
//! The labels have few values, known in advance: no label holds a path, a session or an owner. Counters and
//! gauges are sums over all managers of the process.
//!
//! | metric | kind | labels | |
//! |---|---|---|---|
//! | [`WAIT_SECONDS`] | histogram | `recipe`, `outcome` | How long a call of acquire or wait took |
//! | [`HOLD_SECONDS`] | histogram | `recipe`, `outcome` | How long a hold lasted, from its grant |
//! | [`WAITING`] | gauge | `recipe` | Calls of acquire or wait in progress |
//! | [`HELD`] | gauge | `recipe` | Holds that are not known to be lost |
//! | [`LOST_TOTAL`] | counter | `recipe`, `reason` | Holds that ended before their release |
//! | [`SESSIONS_EXPIRED_TOTAL`] | counter | `reason` | Sessions that ended, except by shutdowns |
//! | [`RECONNECTS_TOTAL`] | counter | | Reconnects within a session |
//! | [`PENDING_DELETES`] | gauge | | Nodes to be deleted in the background, which may still exist |
//! | [`LEASE_MARGIN_SECONDS`] | histogram | | Lease time left at a renewal while a lock is held |
//!
//! * `recipe`: `mutex`, `reentrant_mutex`, `read`, `write`, `semaphore`, `semaphore_turn`, `rate_limiter`, or
//!   the name that the author of a recipe sets by
//!   [`LockQueue::with_metric_name`](crate::LockQueue::with_metric_name). Each member of a multi-lock counts
//!   by itself.
//! * `outcome` of a wait: `granted`, `busy` (a try that was not granted), `timeout`, `error`, `cancelled`
//!   (the future was dropped).
//! * `outcome` of a hold: `released` (confirmed by the server), `unconfirmed` (a release without an answer,
//!   which goes on in the background), `dropped`, `exchanged` (for another hold, as by a downgrade), `lost`.
//! * `reason`: `session_expired`, `session_replaced`, `lease_ran_out`, `node_deleted`, `node_missing`,
//!   `closed`, `auth_failed`.

use std::time::Duration;

use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};

use crate::error::LossReason;

/// How long a call of acquire or wait took, for every outcome. In seconds; by `recipe` and `outcome`.
pub const WAIT_SECONDS: &str = "lockkeeper_wait_seconds";
/// How long a hold lasted, from its grant until it was released or lost. In seconds; by `recipe` and
/// `outcome`.
pub const HOLD_SECONDS: &str = "lockkeeper_hold_seconds";
/// Calls of acquire or wait in progress; by `recipe`.
pub const WAITING: &str = "lockkeeper_waiting";
/// Holds that are not known to be lost; by `recipe`.
pub const HELD: &str = "lockkeeper_held";
/// Holds that ended before their holders released them; by `recipe` and `reason`.
pub const LOST_TOTAL: &str = "lockkeeper_lost_total";
/// Sessions that ended, except by shutdowns; by `reason`.
pub const SESSIONS_EXPIRED_TOTAL: &str = "lockkeeper_sessions_expired_total";
/// Reconnects within a session.
pub const RECONNECTS_TOTAL: &str = "lockkeeper_reconnects_total";
/// Nodes that are to be deleted in the background and may still exist.
pub const PENDING_DELETES: &str = "lockkeeper_pending_deletes";
/// The time that was left of the lease when it was renewed while a lock was held. In seconds. Near zero,
/// holds are about to be lost.
pub const LEASE_MARGIN_SECONDS: &str = "lockkeeper_lease_margin_seconds";

/// Describes the metrics to the recorder, for those that show descriptions. Call it after the recorder is
/// installed.
pub fn describe() {
    describe_histogram!(WAIT_SECONDS, Unit::Seconds, "How long a call of acquire or wait took.");
    describe_histogram!(HOLD_SECONDS, Unit::Seconds, "How long a hold lasted, from its grant.");
    describe_gauge!(WAITING, Unit::Count, "Calls of acquire or wait in progress.");
    describe_gauge!(HELD, Unit::Count, "Holds that are not known to be lost.");
    describe_counter!(LOST_TOTAL, Unit::Count, "Holds that ended before their release.");
    describe_counter!(SESSIONS_EXPIRED_TOTAL, Unit::Count, "Sessions that ended, except by shutdowns.");
    describe_counter!(RECONNECTS_TOTAL, Unit::Count, "Reconnects within a session.");
    describe_gauge!(PENDING_DELETES, Unit::Count, "Nodes to be deleted in the background.");
    describe_histogram!(
        LEASE_MARGIN_SECONDS,
        Unit::Seconds,
        "The time left of the lease when it was renewed while a lock was held."
    );
}

pub(crate) fn waiting(recipe: &'static str, change: f64) {
    gauge!(WAITING, "recipe" => recipe).increment(change);
}

pub(crate) fn waited(recipe: &'static str, outcome: &'static str, time: Duration) {
    histogram!(WAIT_SECONDS, "recipe" => recipe, "outcome" => outcome).record(time);
}

pub(crate) fn held(recipe: &'static str, change: f64) {
    gauge!(HELD, "recipe" => recipe).increment(change);
}

pub(crate) fn held_for(recipe: &'static str, outcome: &'static str, time: Duration) {
    histogram!(HOLD_SECONDS, "recipe" => recipe, "outcome" => outcome).record(time);
}

pub(crate) fn lost(recipe: &'static str, reason: LossReason) {
    counter!(LOST_TOTAL, "recipe" => recipe, "reason" => label(reason)).increment(1);
}

pub(crate) fn session_expired(reason: LossReason) {
    counter!(SESSIONS_EXPIRED_TOTAL, "reason" => label(reason)).increment(1);
}

pub(crate) fn reconnected() {
    counter!(RECONNECTS_TOTAL).increment(1);
}

pub(crate) fn pending_deletes(change: f64) {
    gauge!(PENDING_DELETES).increment(change);
}

/// `None` if there is no hold that could be lost.
pub(crate) fn lease_margin(margin: impl FnOnce() -> Option<Duration>) {
    if let Some(margin) = margin() {
        histogram!(LEASE_MARGIN_SECONDS).record(margin);
    }
}

fn label(reason: LossReason) -> &'static str {
    match reason {
        LossReason::SessionExpired => "session_expired",
        LossReason::SessionReplaced => "session_replaced",
        LossReason::LeaseRanOut => "lease_ran_out",
        LossReason::NodeDeleted => "node_deleted",
        LossReason::NodeMissing => "node_missing",
        LossReason::Closed => "closed",
        LossReason::AuthFailed => "auth_failed",
    }
}
