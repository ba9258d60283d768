//! Metrics, and timers of waits and holds.

#[cfg(feature = "metrics")]
pub mod metrics;
#[cfg(not(feature = "metrics"))]
#[path = "no_metrics.rs"]
pub(crate) mod metrics;
pub(crate) mod timers;

/// For recipe authors: counts a node of a service that cannot be read as an instance.
pub fn count_unreadable_instance() {
    metrics::unreadable_instance();
}

/// For recipe authors: counts a choice among the instances of a service that found none.
pub fn count_missing_instance() {
    metrics::missing_instance();
}

/// For recipe authors: counts a circle of owners of one manager that wait for each other.
pub fn count_owner_deadlock() {
    metrics::owner_deadlocked();
}
