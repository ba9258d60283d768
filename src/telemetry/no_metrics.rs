//! Without the feature `metrics` nothing is recorded. The functions are those of the module with it.

use std::time::Duration;

use crate::error::LossReason;

pub(crate) fn manager_started() {}

pub(crate) fn recipe_holds(_recipe: &'static str) {}

pub(crate) fn connected(_change: f64) {}

pub(crate) fn disconnected(_change: f64) {}

pub(crate) fn txn_unknown() {}

pub(crate) fn txn(_outcome: &'static str, _time: Duration) {}

pub(crate) fn waiting(_recipe: &'static str, _change: f64) {}

pub(crate) fn waited(_recipe: &'static str, _outcome: &'static str, _time: Duration) {}

pub(crate) fn updated(_recipe: &'static str, _outcome: &'static str, _time: Duration) {}

pub(crate) fn held(_recipe: &'static str, _change: f64) {}

pub(crate) fn held_for(_recipe: &'static str, _outcome: &'static str, _time: Duration) {}

pub(crate) fn lost(_recipe: &'static str, _reason: LossReason) {}

pub(crate) fn session_expired(_reason: LossReason) {}

pub(crate) fn reconnected() {}

pub(crate) fn node_bytes(_change: f64) {}

pub(crate) fn views(_change: f64) {}

pub(crate) fn view_changes(_changes: usize) {}

pub(crate) fn view_compared() {}

pub(crate) fn registrations(_change: f64) {}

pub(crate) fn registration_ended() {}

pub(crate) fn pending_deletes(_change: f64) {}

pub(crate) fn lease_margin(_margin: impl FnOnce() -> Option<Duration>) {}

pub(crate) fn owner_deadlocked() {}

pub(crate) fn unreadable_instance() {}

pub(crate) fn missing_instance() {}
