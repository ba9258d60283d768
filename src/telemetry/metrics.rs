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
//! | [`UPDATE_SECONDS`] | histogram | `recipe`, `outcome` | How long a call of a counter or value took |
//! | [`TXN_SECONDS`] | histogram | `outcome` | How long a commit of a transaction took |
//! | [`TXN_UNKNOWN_TOTAL`] | counter | | Commits of a transaction with an unknown outcome |
//! | [`REQUEST_SECONDS`] | histogram | `request`, `outcome` | How long the answer to a request took |
//! | [`SENT_BYTES_TOTAL`] | counter | `request` | Data of nodes that was sent |
//! | [`RECEIVED_BYTES_TOTAL`] | counter | `request` | Data and names of nodes that were received |
//! | [`WAITING`] | gauge | `recipe` | Calls of acquire or wait in progress |
//! | [`HELD`] | gauge | `recipe` | Holds that are not known to be lost |
//! | [`LOST_TOTAL`] | counter | `recipe`, `reason` | Holds that ended before their release |
//! | [`SESSIONS_EXPIRED_TOTAL`] | counter | `reason` | Sessions that ended, except by shutdowns |
//! | [`CONNECTED`] | gauge | | Sessions that are connected |
//! | [`DISCONNECTED`] | gauge | | Sessions that are wanted and not connected |
//! | [`RECONNECTS_TOTAL`] | counter | | Reconnects within a session |
//! | [`PENDING_DELETES`] | gauge | | Nodes to be deleted in the background, which may still exist |
//! | [`NODE_BYTES`] | gauge | | Sizes of the paths of the ephemeral nodes that exist or may |
//! | [`VIEWS`] | gauge | | Views that are followed |
//! | [`VIEW_CHANGES_TOTAL`] | counter | | Nodes that differed from the last snapshot of a view |
//! | [`VIEW_COMPARISONS_TOTAL`] | counter | | Full comparisons of a view with the server that began |
//! | [`REGISTRATIONS`] | gauge | | Registrations whose node exists, as far as is known |
//! | [`REGISTRATIONS_ENDED_TOTAL`] | counter | | Nodes of registrations that ended before their release |
//! | [`UNREADABLE_INSTANCES_TOTAL`] | counter | | Nodes of a service that are no instance |
//! | [`MISSING_INSTANCES_TOTAL`] | counter | | Choices of a balancer that found no instance |
//! | [`LEASE_MARGIN_SECONDS`] | histogram | | Lease time left at a renewal while a lock is held |
//! | [`OWNER_DEADLOCKS_TOTAL`] | counter | | Circles of owners of one manager that wait for each other |
//!
//! * `recipe`: `mutex`, `reentrant_mutex`, `read`, `write`, `semaphore`, `semaphore_turn`, `rate_limiter`,
//!   `election`, `schedule`, `once_cell`, `counter`, `shared_value`, `table`, `barrier`, `double_barrier`,
//!   `partition`, `work_queue`; `other`, or the name that the author of a further recipe sets by
//!   [`LockQueue::with_metric_name`](crate::LockQueue::with_metric_name). Each member of a multi-lock counts
//!   by itself.
//! * `outcome` of a wait: `granted`, `busy` (a try that was not granted), `timeout`, `error`, `cancelled`
//!   (the future was dropped).
//! * `outcome` of a hold: `released` (confirmed by the server), `unconfirmed` (a release without an answer,
//!   which continues in the background), `dropped`, `exchanged` (for another hold, as by a downgrade),
//!   `lost`.
//! * `outcome` of an update: `done`, `timeout` (not applied), `error`, `unknown` (it may be applied),
//!   `cancelled`.
//! * `outcome` of a commit: `committed`; `before`, an operation that was committed by an earlier try;
//!   `lost` and `refused`, and nothing was written; `unknown` (it may be committed); `timeout` (not
//!   committed); `error`, `cancelled`.
//! * `request`: `create`, `delete`, `exists`, `read` (the data of a node), `write`, `children`, `acl` (read
//!   or set), `multi` (a transaction), `multi_read` (data or children of several nodes), `watch` (of a view),
//!   `ephemerals` (the nodes of the session), `sync`. Not connects, pings and removed watches.
//! * `outcome` of a request: `done`, `refused`, `unanswered` (the connection broke, or the session ended).
//! * `reason`: `session_expired`, `no_answer`, `session_replaced`, `lease_ran_out`, `node_deleted`,
//!   `node_missing`, `closed`, `runtime_ended`, `auth_failed`.

use std::time::Duration;

use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};

use crate::error::LossReason;

/// How long a call of acquire or wait took, for every outcome. In seconds; by `recipe` and `outcome`.
pub const WAIT_SECONDS: &str = "lockkeeper_wait_seconds";
/// How long a hold lasted, from its grant until it was released or lost. In seconds; by `recipe` and
/// `outcome`.
pub const HOLD_SECONDS: &str = "lockkeeper_hold_seconds";
/// How long a read or a change of a counter or a shared value took. In seconds; by `recipe` and `outcome`.
pub const UPDATE_SECONDS: &str = "lockkeeper_update_seconds";
/// How long a commit of a transaction under a hold took. In seconds; by `outcome`.
pub const TXN_SECONDS: &str = "lockkeeper_txn_seconds";
/// Commits of a transaction under a hold that have an unknown outcome.
pub const TXN_UNKNOWN_TOTAL: &str = "lockkeeper_txn_unknown_total";
/// How long the answer to a request to ZooKeeper took, from the call that sends it; also the time that a
/// request waits for a connection. A request whose answer nobody waits for is not measured. In seconds; by
/// `request` and `outcome`.
pub const REQUEST_SECONDS: &str = "lockkeeper_request_seconds";
/// The data of nodes in creates and writes, also in transactions. In bytes; by `request`.
pub const SENT_BYTES_TOTAL: &str = "lockkeeper_sent_bytes_total";
/// The data of nodes, and the names of children, in answers. In bytes; by `request`.
pub const RECEIVED_BYTES_TOTAL: &str = "lockkeeper_received_bytes_total";
/// Calls of acquire or wait in progress; by `recipe`.
pub const WAITING: &str = "lockkeeper_waiting";
/// Holds that are not known to be lost; by `recipe`.
pub const HELD: &str = "lockkeeper_held";
/// Holds that ended before their holders released them; by `recipe` and `reason`.
pub const LOST_TOTAL: &str = "lockkeeper_lost_total";
/// Sessions that ended, except by shutdowns; by `reason`.
pub const SESSIONS_EXPIRED_TOTAL: &str = "lockkeeper_sessions_expired_total";
/// Sessions that are connected: one for each manager, and one for its views.
pub const CONNECTED: &str = "lockkeeper_connected";
/// Sessions that are not connected although a manager, or its views, needs them: the link is down, or a
/// session is being opened.
pub const DISCONNECTED: &str = "lockkeeper_disconnected";
/// Reconnects within a session.
pub const RECONNECTS_TOTAL: &str = "lockkeeper_reconnects_total";
/// Nodes that are to be deleted in the background and may still exist.
pub const PENDING_DELETES: &str = "lockkeeper_pending_deletes";
/// The sizes of the paths of the ephemeral nodes that exist or may: of each session at most its budget. In
/// bytes.
pub const NODE_BYTES: &str = "lockkeeper_node_bytes";
/// Views that are followed.
pub const VIEWS: &str = "lockkeeper_views";
/// Nodes that differed from the last snapshot of a view.
pub const VIEW_CHANGES_TOTAL: &str = "lockkeeper_view_changes_total";
/// Full comparisons of a view with the server that began: one for each connection, if nothing fails.
pub const VIEW_COMPARISONS_TOTAL: &str = "lockkeeper_view_comparisons_total";
/// Registrations whose node exists, as far as is known.
pub const REGISTRATIONS: &str = "lockkeeper_registrations";
/// Nodes of registrations that ended before their release: with their session, or deleted by another client.
pub const REGISTRATIONS_ENDED_TOTAL: &str = "lockkeeper_registrations_ended_total";
/// Nodes of a service that cannot be read as an instance: one for each state of a node that a view reads.
pub const UNREADABLE_INSTANCES_TOTAL: &str = "lockkeeper_unreadable_instances_total";
/// Choices of a balancer that found no enabled instance.
pub const MISSING_INSTANCES_TOTAL: &str = "lockkeeper_missing_instances_total";
/// The time that was left of the lease when it was renewed while a lock was held. In seconds. Near zero,
/// holds are about to be lost.
pub const LEASE_MARGIN_SECONDS: &str = "lockkeeper_lease_margin_seconds";
/// Circles of owners of one manager that wait for each other, each found by the acquire that closed it.
pub const OWNER_DEADLOCKS_TOTAL: &str = "lockkeeper_owner_deadlocks_total";

/// The names of all metrics.
pub const ALL: [&str; 26] = [
    WAIT_SECONDS,
    HOLD_SECONDS,
    UPDATE_SECONDS,
    TXN_SECONDS,
    TXN_UNKNOWN_TOTAL,
    REQUEST_SECONDS,
    SENT_BYTES_TOTAL,
    RECEIVED_BYTES_TOTAL,
    WAITING,
    HELD,
    LOST_TOTAL,
    SESSIONS_EXPIRED_TOTAL,
    CONNECTED,
    DISCONNECTED,
    RECONNECTS_TOTAL,
    PENDING_DELETES,
    NODE_BYTES,
    VIEWS,
    VIEW_CHANGES_TOTAL,
    VIEW_COMPARISONS_TOTAL,
    REGISTRATIONS,
    REGISTRATIONS_ENDED_TOTAL,
    UNREADABLE_INSTANCES_TOTAL,
    MISSING_INSTANCES_TOTAL,
    LEASE_MARGIN_SECONDS,
    OWNER_DEADLOCKS_TOTAL,
];

/// The requests that send data.
const SENDING: [&str; 3] = ["create", "write", "multi"];

/// The requests that receive data or names.
const RECEIVING: [&str; 4] = ["read", "children", "multi_read", "ephemerals"];

/// The reasons with which sessions end, except by shutdowns.
const SESSION_REASONS: [LossReason; 5] = [
    LossReason::SessionExpired,
    LossReason::NoAnswer,
    LossReason::SessionReplaced,
    LossReason::LeaseRanOut,
    LossReason::AuthFailed,
];

/// The reasons with which holds end.
const HOLD_REASONS: [LossReason; 9] = [
    LossReason::SessionExpired,
    LossReason::NoAnswer,
    LossReason::SessionReplaced,
    LossReason::LeaseRanOut,
    LossReason::NodeDeleted,
    LossReason::NodeMissing,
    LossReason::Closed,
    LossReason::RuntimeEnded,
    LossReason::AuthFailed,
];

/// Describes the metrics to the recorder, for those that show descriptions. Call it after the recorder is
/// installed.
pub fn describe() {
    describe_histogram!(WAIT_SECONDS, Unit::Seconds, "How long a call of acquire or wait took.");
    describe_histogram!(HOLD_SECONDS, Unit::Seconds, "How long a hold lasted, from its grant.");
    describe_histogram!(UPDATE_SECONDS, Unit::Seconds, "How long a read or a change of a shared value took.");
    describe_histogram!(TXN_SECONDS, Unit::Seconds, "How long a commit of a transaction took.");
    describe_counter!(TXN_UNKNOWN_TOTAL, Unit::Count, "Commits of a transaction with an unknown outcome.");
    describe_histogram!(REQUEST_SECONDS, Unit::Seconds, "How long the answer to a request took.");
    describe_counter!(SENT_BYTES_TOTAL, Unit::Bytes, "Data of nodes that was sent.");
    describe_counter!(RECEIVED_BYTES_TOTAL, Unit::Bytes, "Data and names of nodes that were received.");
    describe_gauge!(WAITING, Unit::Count, "Calls of acquire or wait in progress.");
    describe_gauge!(HELD, Unit::Count, "Holds that are not known to be lost.");
    describe_counter!(LOST_TOTAL, Unit::Count, "Holds that ended before their release.");
    describe_counter!(SESSIONS_EXPIRED_TOTAL, Unit::Count, "Sessions that ended, except by shutdowns.");
    describe_gauge!(CONNECTED, Unit::Count, "Sessions that are connected.");
    describe_gauge!(DISCONNECTED, Unit::Count, "Sessions that are wanted and not connected.");
    describe_counter!(RECONNECTS_TOTAL, Unit::Count, "Reconnects within a session.");
    describe_gauge!(PENDING_DELETES, Unit::Count, "Nodes to be deleted in the background.");
    describe_gauge!(NODE_BYTES, Unit::Bytes, "Sizes of the paths of the ephemeral nodes.");
    describe_gauge!(VIEWS, Unit::Count, "Views that are followed.");
    describe_counter!(
        VIEW_CHANGES_TOTAL,
        Unit::Count,
        "Nodes that differed from the last snapshot of a view."
    );
    describe_counter!(VIEW_COMPARISONS_TOTAL, Unit::Count, "Full comparisons of a view with the server.");
    describe_gauge!(REGISTRATIONS, Unit::Count, "Registrations whose node exists.");
    describe_counter!(
        REGISTRATIONS_ENDED_TOTAL,
        Unit::Count,
        "Nodes of registrations that ended before their release."
    );
    describe_counter!(UNREADABLE_INSTANCES_TOTAL, Unit::Count, "Nodes of a service that are no instance.");
    describe_counter!(MISSING_INSTANCES_TOTAL, Unit::Count, "Choices that found no instance of a service.");
    describe_histogram!(
        LEASE_MARGIN_SECONDS,
        Unit::Seconds,
        "The time left of the lease when it was renewed while a lock was held."
    );
    describe_counter!(OWNER_DEADLOCKS_TOTAL, Unit::Count, "Circles of owners that wait for each other.");
}

/// Shows every series without a recipe, at zero. So the first increment of a counter is an increase, and a
/// missing series means that nothing is measured.
pub(crate) fn manager_started() {
    for name in [CONNECTED, DISCONNECTED, PENDING_DELETES, NODE_BYTES, VIEWS, REGISTRATIONS] {
        gauge!(name).increment(0.0);
    }
    for name in [
        TXN_UNKNOWN_TOTAL,
        RECONNECTS_TOTAL,
        VIEW_CHANGES_TOTAL,
        VIEW_COMPARISONS_TOTAL,
        REGISTRATIONS_ENDED_TOTAL,
        UNREADABLE_INSTANCES_TOTAL,
        MISSING_INSTANCES_TOTAL,
        OWNER_DEADLOCKS_TOTAL,
    ] {
        counter!(name).increment(0);
    }
    for request in SENDING {
        counter!(SENT_BYTES_TOTAL, "request" => request).increment(0);
    }
    for request in RECEIVING {
        counter!(RECEIVED_BYTES_TOTAL, "request" => request).increment(0);
    }
    for reason in SESSION_REASONS {
        counter!(SESSIONS_EXPIRED_TOTAL, "reason" => label(reason)).increment(0);
    }
}

/// Shows the losses of a recipe, at zero: before its first hold can be lost.
pub(crate) fn recipe_holds(recipe: &'static str) {
    for reason in HOLD_REASONS {
        counter!(LOST_TOTAL, "recipe" => recipe, "reason" => label(reason)).increment(0);
    }
}

pub(crate) fn connected(change: f64) {
    gauge!(CONNECTED).increment(change);
}

pub(crate) fn disconnected(change: f64) {
    gauge!(DISCONNECTED).increment(change);
}

pub(crate) fn txn(outcome: &'static str, time: Duration) {
    histogram!(TXN_SECONDS, "outcome" => outcome).record(time);
}

pub(crate) fn txn_unknown() {
    counter!(TXN_UNKNOWN_TOTAL).increment(1);
}

pub(crate) fn request(request: &'static str, outcome: &'static str, time: Duration) {
    histogram!(REQUEST_SECONDS, "request" => request, "outcome" => outcome).record(time);
}

pub(crate) fn sent(request: &'static str, bytes: usize) {
    if bytes > 0 {
        counter!(SENT_BYTES_TOTAL, "request" => request).increment(bytes as u64);
    }
}

pub(crate) fn received(request: &'static str, bytes: usize) {
    if bytes > 0 {
        counter!(RECEIVED_BYTES_TOTAL, "request" => request).increment(bytes as u64);
    }
}

pub(crate) fn waiting(recipe: &'static str, change: f64) {
    gauge!(WAITING, "recipe" => recipe).increment(change);
}

pub(crate) fn waited(recipe: &'static str, outcome: &'static str, time: Duration) {
    histogram!(WAIT_SECONDS, "recipe" => recipe, "outcome" => outcome).record(time);
}

pub(crate) fn updated(recipe: &'static str, outcome: &'static str, time: Duration) {
    histogram!(UPDATE_SECONDS, "recipe" => recipe, "outcome" => outcome).record(time);
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

pub(crate) fn views(change: f64) {
    gauge!(VIEWS).increment(change);
}

pub(crate) fn view_changes(changes: usize) {
    counter!(VIEW_CHANGES_TOTAL).increment(changes as u64);
}

pub(crate) fn view_compared() {
    counter!(VIEW_COMPARISONS_TOTAL).increment(1);
}

pub(crate) fn registrations(change: f64) {
    gauge!(REGISTRATIONS).increment(change);
}

pub(crate) fn registration_ended() {
    counter!(REGISTRATIONS_ENDED_TOTAL).increment(1);
}

pub(crate) fn unreadable_instance() {
    counter!(UNREADABLE_INSTANCES_TOTAL).increment(1);
}

pub(crate) fn missing_instance() {
    counter!(MISSING_INSTANCES_TOTAL).increment(1);
}

pub(crate) fn pending_deletes(change: f64) {
    gauge!(PENDING_DELETES).increment(change);
}

pub(crate) fn node_bytes(change: f64) {
    gauge!(NODE_BYTES).increment(change);
}

pub(crate) fn owner_deadlocked() {
    counter!(OWNER_DEADLOCKS_TOTAL).increment(1);
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
        LossReason::NoAnswer => "no_answer",
        LossReason::SessionReplaced => "session_replaced",
        LossReason::LeaseRanOut => "lease_ran_out",
        LossReason::NodeDeleted => "node_deleted",
        LossReason::NodeMissing => "node_missing",
        LossReason::Closed => "closed",
        LossReason::RuntimeEnded => "runtime_ended",
        LossReason::AuthFailed => "auth_failed",
    }
}
