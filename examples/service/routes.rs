//! The endpoints: two probes, the metrics, and the sale of a seat under a lock.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use lockkeeper::{ConnectionManager, Error, FencingToken, Mutex};
use metrics_exporter_prometheus::PrometheusHandle;
use serde::Serialize;
use tokio::sync::watch;

use super::store::{Store, StoreError};

/// Shorter than the caller's own timeout, so that the caller hears the reason.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// What the handlers share.
pub(crate) struct Service {
    manager: ConnectionManager,
    store: Store,
    metrics: PrometheusHandle,
    work: Duration,
    draining: watch::Receiver<bool>,
}

impl Service {
    pub(crate) fn new(
        manager: ConnectionManager,
        store: Store,
        metrics: PrometheusHandle,
        work: Duration,
        draining: watch::Receiver<bool>,
    ) -> Self {
        Self { manager, store, metrics, work, draining }
    }
}

pub(crate) fn router(service: Arc<Service>) -> Router {
    Router::new()
        .route("/live", get(live))
        .route("/ready", get(ready))
        .route("/metrics", get(metrics))
        .route("/trains/{train}/seats", post(sell))
        .with_state(service)
}

/// The process answers. A lost session is no reason to restart it: the manager opens the next one.
async fn live() -> &'static str {
    "live\n"
}

/// Whether this process should get requests: not while it shuts down, nor while it can take no lock.
async fn ready(State(service): State<Arc<Service>>) -> Response {
    let health = service.manager.health();
    let is_draining = *service.draining.borrow();
    let status =
        if health.is_ready() && !is_draining { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let draining = if is_draining { "; shutting down" } else { "" };
    (status, format!("{health}{draining}\n")).into_response()
}

async fn metrics(State(service): State<Arc<Service>>) -> Response {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], service.metrics.render()).into_response()
}

/// A sold seat, and the token under which it was sold.
#[derive(Debug, Serialize)]
struct Sale {
    seat: u32,
    token: FencingToken,
}

/// Sells the next seat of a train. Of all processes, one sells seats of this train at a time.
///
/// If the caller goes away, this future is dropped, and the guard releases in the background.
async fn sell(State(service): State<Arc<Service>>, Path(train): Path<String>) -> Result<Json<Sale>, Refusal> {
    // A train is one element of the lock's path.
    if train.is_empty() || !train.chars().all(|c| c.is_ascii_alphanumeric()) {
        return Err(Refusal::NoTrain);
    }
    let mutex = Mutex::new(&service.manager, format!("/service/trains/{train}"))?;
    let guard = mutex.acquire_timeout(LOCK_WAIT).await?;
    let token = guard.fencing_token();
    // The long part ends as soon as the lock is lost, and nothing is sold then.
    guard.run(tokio::time::sleep(service.work)).await.map_err(Error::from)?;
    // No lock can stop a process that is paused here. The store can: it sees that the token is old.
    let seat = service.store.sell(&train, token).await?;
    // The sale is stored. If the release is not confirmed now, it continues in the background.
    if let Err(error) = guard.release().await {
        eprintln!("service: {error}");
    }
    Ok(Json(Sale { seat, token }))
}

/// Why no seat was sold.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("no such train; give letters and digits")]
    NoTrain,
    #[error(transparent)]
    Lock(#[from] Error),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = match &self {
            Self::NoTrain => StatusCode::NOT_FOUND,
            Self::Store(StoreError::EarlierHolder { .. }) => StatusCode::CONFLICT,
            Self::Store(_) => StatusCode::INTERNAL_SERVER_ERROR,
            // Nothing was sold: the caller may try again, at another process as well.
            Self::Lock(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        (status, [(header::RETRY_AFTER, "1")], format!("{self}\n")).into_response()
    }
}
