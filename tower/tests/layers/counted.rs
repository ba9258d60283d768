//! The metrics of the layers.

use std::collections::BTreeMap;

use axum::Router;
use axum::routing::get as on_get;
use lockkeeper::{KeyedRateLimiter, Semaphore};
use lockkeeper_tower::metrics::HTTP_REQUESTS_TOTAL;
use lockkeeper_tower::{ConcurrencyLayer, LockLayer, RateLimitLayer};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};

use crate::answer::get;
use crate::fixture::{WINDOW, connect, serve, server};

/// The requests by layer and outcome, since the last call.
fn counts(recorded: &Snapshotter) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for (key, _, _, value) in recorded.snapshot().into_vec() {
        let labels: Vec<&str> = key.key().labels().map(metrics::Label::value).collect();
        if let DebugValue::Counter(count) = value
            && key.key().name() == HTTP_REQUESTS_TOTAL
        {
            counts.insert(labels.join(" "), count);
        }
    }
    counts
}

#[tokio::test]
async fn every_request_is_counted_by_its_layer_and_its_outcome() {
    let recorder = DebuggingRecorder::new();
    let recorded = recorder.snapshotter();
    let _recorder = metrics::set_default_local_recorder(&recorder);
    let server = server().await;
    let manager = connect(&server).await;
    let limiters = KeyedRateLimiter::new(&manager, "/calls", 2, WINDOW).unwrap();
    let limits = RateLimitLayer::keyed(limiters, |parts| Some(parts.uri.path()[1..].to_owned()));
    let permits = ConcurrencyLayer::new(Semaphore::new(&manager, "/permits", 1).unwrap());
    let locks = LockLayer::new(&manager, "/locks", |_| Some("7".to_owned())).unwrap();
    assert_eq!(counts(&recorded).get("lock lost"), Some(&0), "it is there before its first request");

    let router = || Router::new().route("/anna", on_get(async || "hello"));
    let limited = serve(router().layer(limits)).await;
    let statuses = async |service, paths: &[&str]| {
        let mut statuses = Vec::new();
        for path in paths {
            statuses.push(get(service, path).await.status);
        }
        statuses
    };
    assert_eq!(statuses(limited, &["/anna", "/anna", "/anna", "/"]).await, [200, 200, 429, 400]);
    let locked = serve(router().layer(permits).layer(locks.with_wait(WINDOW))).await;
    assert_eq!(statuses(locked, &["/anna"]).await, [200]);
    let counts = counts(&recorded);
    for (of, expected) in [
        ("rate_limit passed", 2),
        ("rate_limit refused", 1),
        ("rate_limit bad_key", 1),
        ("lock passed", 1),
        ("concurrency passed", 1),
        ("concurrency refused", 0),
    ] {
        assert_eq!(counts.get(of), Some(&expected), "{of}: {counts:?}");
    }
}
