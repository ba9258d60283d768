//! How long anything may take before it counts as never.

use std::future::Future;
use std::time::Duration;

use lockkeeper_tests::{Timing, bounded};

/// Bounds the healing: far more than the longest session here and what a busy machine adds.
const LIMIT: Duration = Duration::from_secs(20);

pub(crate) async fn within<T>(what: &str, work: impl Future<Output = T>) -> Result<T, String> {
    let limit = Timing::scaled(LIMIT);
    bounded(limit, work).await.ok_or_else(|| format!("not within {limit:?}: {what}"))
}
