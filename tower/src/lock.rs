use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use lockkeeper::znodes::IntoPath;
use lockkeeper::{ConnectionManager, Error, Mutex, MutexGuard, ZnodePath};
use tower_layer::Layer;

use crate::gate::{Entry, Gate, GateService};
use crate::hold::HoldWatch;
use crate::key::{KeyOf, node_name};
use crate::outage::{Denial, Outage};
use crate::outcome::RequestOutcome;
use crate::refusal::Refusal;

/// How long a request waits by default.
const WAIT: Duration = Duration::from_secs(10);

/// Serves requests with the same key one after another, over all processes: each one under a [`Mutex`].
///
/// The key is that of what the request changes: an order, an account. The lock is held until the body of the
/// response has ended, or was dropped, and then released in the background. A client that reads slowly keeps
/// the lock for as long: let the server end such connections. A request that does not get its lock in time is
/// answered with 503 and `Retry-After: 1`.
///
/// The guard is in the extensions of the request, as `Arc<MutexGuard>`: a handler gives its writes the
/// [fencing token](lockkeeper::Guard::fencing_token), or makes them by [`txn`](lockkeeper::Guard::txn). No
/// lock can stop a process that is paused between a check and a write. A handler that keeps a clone of the
/// guard keeps the lock: such as one for work that continues behind the response.
///
/// # Ordering and fairness
///
/// As [`Mutex`]: first in, first out among the requests of a key. Keys do not wait for each other.
///
/// # Cost
///
/// As [`Mutex`]: a round trip of the ensemble for a free lock.
///
/// # Session loss
///
/// The lock is lost with its session. The work on the request is dropped then, before the server can grant
/// the lock to another one, and it is answered with 503; a body that has begun ends with the error
/// [`HoldLost`](crate::HoldLost). What the handler did until then remains. A handler that must not be dropped
/// spawns its work, gives it a clone of the guard, and lets it check
/// [`is_valid`](lockkeeper::Guard::is_valid).
///
/// # Outages
///
/// Without an answer of ZooKeeper a request is answered with 503. A lock never fails open. Otherwise as
/// [`RateLimitLayer`](crate::RateLimitLayer#outages).
///
/// # Cancel safety
///
/// A dropped request leaves no node behind, whether it waits or is served. If it was served, its lock is
/// released in the background.
///
/// # Layout
///
/// `<path>/<key>` is the path of the mutex of a key. Each byte of the key other than a letter, a digit, `-`
/// and `_` of ASCII is written as `%` and two hexadecimal digits, as by
/// [`KeyedRateLimiter`](lockkeeper::KeyedRateLimiter). The servers remove the node of a key that nobody uses.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let servers = server.connect_string();
/// use std::sync::Arc;
/// use axum::routing::post;
/// use axum::{Extension, Router};
/// use lockkeeper::{ConnectionManager, MutexGuard};
/// use lockkeeper_tower::LockLayer;
///
/// let manager = ConnectionManager::connect(&servers).await?; // host:port,host:port,…
/// let orders = LockLayer::new(&manager, "/locks/orders", |request| {
///     request.uri.path().strip_prefix("/orders/").map(str::to_owned)
/// })?;
/// let pay = async |Extension(guard): Extension<Arc<MutexGuard>>| {
///     format!("paid once, fenced by {}", guard.fencing_token())
/// };
/// let service: Router = Router::new().route("/orders/{order}", post(pay)).layer(orders);
/// # drop(service);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct LockLayer {
    locks: Arc<Locks>,
    wait: Duration,
    outage: Arc<Outage>,
}

/// The service of a [`LockLayer`].
pub type LockService<S> = GateService<S, LockLayer>;

struct Locks {
    manager: ConnectionManager,
    path: ZnodePath,
    key_of: Box<KeyOf>,
}

impl LockLayer {
    /// Serves the requests of each key, as `key_of` returns it, under a mutex below `path`, which is below
    /// the manager's chroot. Sends nothing.
    ///
    /// A request for which `key_of` returns `None` takes no lock, and has no guard in its extensions. A key
    /// that can be none, because it is empty or too long for a path, is answered with 400.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the path is malformed.
    pub fn new(
        manager: &ConnectionManager,
        path: impl IntoPath,
        key_of: impl Fn(&Parts) -> Option<String> + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        RequestOutcome::show_all(Self::LAYER);
        let locks = Locks { manager: manager.clone(), path: path.into_path()?, key_of: Box::new(key_of) };
        Ok(Self { locks: Arc::new(locks), wait: WAIT, outage: Arc::new(Outage::new(Self::LAYER)) })
    }

    /// Waits for the lock for at most this time, before the layer refuses. With zero it refuses at once.
    /// Default: 10 s.
    #[must_use]
    pub fn with_wait(self, wait: Duration) -> Self {
        Self { wait, ..self }
    }
}

impl Locks {
    fn mutex(&self, key: &str) -> Result<Mutex, Error> {
        Mutex::new(&self.manager, self.path.child(&node_name(key))?)
    }
}

async fn acquire(mutex: &Mutex, wait: Duration) -> Result<Option<MutexGuard>, Error> {
    if wait.is_zero() {
        return mutex.try_acquire().await;
    }
    mutex.acquire_timeout(wait).await.map(Some)
}

impl Gate for LockLayer {
    const LAYER: &'static str = "lock";

    async fn enter(&self, parts: &mut Parts) -> (RequestOutcome, Result<Entry, Refusal>) {
        let Some(key) = (self.locks.key_of)(parts) else {
            return (RequestOutcome::Passed, Ok(Entry::default()));
        };
        let Ok(mutex) = self.locks.mutex(&key) else {
            return (RequestOutcome::BadKey, Err(Refusal::bad_key()));
        };
        match self.outage.ask(acquire(&mutex, self.wait), acquire(&mutex, Duration::ZERO)).await {
            Ok(guard) => {
                let guard = Arc::new(guard);
                let hold = HoldWatch::new(&guard);
                parts.extensions.insert(guard);
                (RequestOutcome::Passed, Ok(Entry::under(hold)))
            }
            Err(Denial::Busy(_)) => (RequestOutcome::Refused, Err(Refusal::unavailable())),
            Err(Denial::Undecided) => (RequestOutcome::UndecidedRefused, Err(Refusal::unavailable())),
        }
    }
}

impl<S> Layer<S> for LockLayer {
    type Service = LockService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        GateService::new(inner, self)
    }
}

impl Debug for LockLayer {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("LockLayer")
            .field("path", &self.locks.path)
            .field("wait", &self.wait)
            .finish_non_exhaustive()
    }
}
