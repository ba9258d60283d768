use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use http::request::Parts;
use lockkeeper::{Error, Lease, Semaphore};
use tower_layer::Layer;

use crate::gate::{Entry, Gate, GateService};
use crate::hold::HoldWatch;
use crate::outage::{Denial, Outage};
use crate::outcome::RequestOutcome;
use crate::refusal::{Refusal, SOON};

/// Serves a limited number of requests at the same time, over all processes: each one under a permit of a
/// [`Semaphore`].
///
/// The permit is held until the body of the response has ended, or was dropped, and then released in the
/// background. At any time no more requests are served than the semaphore has permits, as its promises say. A
/// client that reads slowly keeps its permit for as long: let the server end such connections.
///
/// A request without a permit is answered at once with 503 and `Retry-After: 1`, or after
/// [`with_wait`](Self::with_wait), or with [429](Self::with_too_many_requests).
///
/// The lease is in the extensions of the request, as `Arc<Lease>`. A handler that keeps a clone keeps the
/// permit: such as one for a connection that is upgraded, where the body of the response ends at once.
///
/// # Ordering and fairness
///
/// As [`Semaphore`], among the requests that wait.
///
/// # Cost
///
/// As [`Semaphore`]: two round trips of the ensemble for each request.
///
/// # Session loss
///
/// The permit is lost with its session. The work on the request is dropped then, and it is answered with 503;
/// a body that has begun ends with the error [`HoldLost`](crate::HoldLost). What the handler did until then
/// remains.
///
/// # Outages
///
/// As [`RateLimitLayer`](crate::RateLimitLayer#outages): the layer fails closed, or [open](Self::fail_open).
/// A request that passes without a permit has no lease in its extensions.
///
/// # Cancel safety
///
/// A dropped request leaves no node behind, whether it waits or is served.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let servers = server.connect_string();
/// use std::time::Duration;
/// use axum::Router;
/// use axum::routing::get;
/// use lockkeeper::{ConnectionManager, Semaphore};
/// use lockkeeper_tower::ConcurrencyLayer;
///
/// let manager = ConnectionManager::connect(&servers).await?; // host:port,host:port,…
/// // At most 20 reports at a time, in the whole fleet.
/// let reports = Semaphore::new(&manager, "/permits/reports", 20)?;
/// let permits = ConcurrencyLayer::new(reports).with_wait(Duration::from_secs(2));
/// let service: Router = Router::new().route("/report", get(async || "a report")).layer(permits);
/// # drop(service);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ConcurrencyLayer {
    semaphore: Semaphore,
    wait: Duration,
    status: StatusCode,
    fails_open: bool,
    outage: Arc<Outage>,
}

/// The service of a [`ConcurrencyLayer`].
pub type ConcurrencyService<S> = GateService<S, ConcurrencyLayer>;

impl ConcurrencyLayer {
    /// Serves each request under one permit of this semaphore.
    #[must_use]
    pub fn new(semaphore: Semaphore) -> Self {
        RequestOutcome::show_all(Self::LAYER);
        let (status, outage) = (StatusCode::SERVICE_UNAVAILABLE, Arc::new(Outage::new(Self::LAYER)));
        Self { semaphore, wait: Duration::ZERO, status, fails_open: false, outage }
    }

    /// Waits for a permit for at most this time, before the layer refuses. Default: zero, the layer refuses
    /// at once.
    #[must_use]
    pub fn with_wait(self, wait: Duration) -> Self {
        Self { wait, ..self }
    }

    /// Refuses with 429, as a limit of the caller, in place of 503. Default: 503.
    #[must_use]
    pub fn with_too_many_requests(self) -> Self {
        Self { status: StatusCode::TOO_MANY_REQUESTS, ..self }
    }

    /// Passes requests on that nothing was decided on, because ZooKeeper did not answer. Nothing limits them.
    /// Default: the layer fails closed.
    #[must_use]
    pub fn fail_open(self) -> Self {
        Self { fails_open: true, ..self }
    }

    async fn acquire(&self, wait: Duration) -> Result<Option<Lease>, Error> {
        if wait.is_zero() {
            return self.semaphore.try_acquire().await;
        }
        self.semaphore.acquire_timeout(wait).await.map(Some)
    }
}

impl Gate for ConcurrencyLayer {
    const LAYER: &'static str = "concurrency";

    async fn enter(&self, parts: &mut Parts) -> (RequestOutcome, Result<Entry, Refusal>) {
        match self.outage.ask(self.acquire(self.wait), self.acquire(Duration::ZERO)).await {
            Ok(lease) => {
                let lease = Arc::new(lease);
                let hold = HoldWatch::new(&lease);
                parts.extensions.insert(lease);
                (RequestOutcome::Passed, Ok(Entry::under(hold)))
            }
            Err(Denial::Busy(_)) => {
                (RequestOutcome::Refused, Err(Refusal::new(self.status).with_retry_after(SOON)))
            }
            Err(Denial::Undecided) if self.fails_open => {
                (RequestOutcome::UndecidedPassed, Ok(Entry::default()))
            }
            Err(Denial::Undecided) => (RequestOutcome::UndecidedRefused, Err(Refusal::unavailable())),
        }
    }
}

impl<S> Layer<S> for ConcurrencyLayer {
    type Service = ConcurrencyService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        GateService::new(inner, self)
    }
}
