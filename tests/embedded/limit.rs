//! How long anything may take before it counts as never.

use std::fmt::Display;
use std::future::Future;
use std::time::Duration;

use lockkeeper_tests::{Timing, bounded};

/// Bounds the healing: far more than the longest session here and what a busy machine adds.
const LIMIT: Duration = Duration::from_secs(20);

pub(crate) async fn within<T>(what: &str, work: impl Future<Output = T>) -> Result<T, String> {
    let limit = Timing::scaled(LIMIT);
    bounded(limit, work).await.ok_or_else(|| format!("not within {limit:?}: {what}"))
}

/// Waits until something is so that nobody announces: the test has to poll.
pub(crate) async fn becomes(what: &str, is_so: impl Fn() -> bool) -> Result<(), String> {
    within(what, async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
}

/// Gives a call more and more time, until it says `text` when it gives up. On a busy machine it may not get
/// that far in less.
pub(crate) async fn gives_up<E: Display>(text: &str, call: impl AsyncFn(Duration) -> E) -> E {
    let gives_up = async {
        let mut timeout = Duration::from_millis(20);
        loop {
            let error = call(timeout).await;
            if error.to_string().contains(text) {
                return error;
            }
            timeout *= 2;
        }
    };
    within(text, gives_up).await.unwrap()
}
