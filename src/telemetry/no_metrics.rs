//! Without the feature `metrics` nothing is recorded. The functions are those of the module with it.

use std::time::Duration;

use crate::error::LossReason;

pub(crate) fn waiting(_recipe: &'static str, _change: f64) {}

pub(crate) fn waited(_recipe: &'static str, _outcome: &'static str, _time: Duration) {}

pub(crate) fn held(_recipe: &'static str, _change: f64) {}

pub(crate) fn held_for(_recipe: &'static str, _outcome: &'static str, _time: Duration) {}

pub(crate) fn lost(_recipe: &'static str, _reason: LossReason) {}

pub(crate) fn session_expired(_reason: LossReason) {}

pub(crate) fn reconnected() {}

pub(crate) fn pending_deletes(_change: f64) {}

pub(crate) fn lease_margin(_margin: impl FnOnce() -> Option<Duration>) {}
