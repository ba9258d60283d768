use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use http::{HeaderValue, StatusCode};
use lockkeeper::error::ConfigError;
use lockkeeper::{Admission, Error, KeyedRateLimiter, RateLimiter};
use tower_layer::Layer;

use super::fields::{PolicyName, RATE_LIMIT, RATE_LIMIT_POLICY};
use crate::gate::{Entry, Gate, GateService};
use crate::key::KeyOf;
use crate::outage::{Denial, Outage};
use crate::outcome::RequestOutcome;
use crate::refusal::{Refusal, SOON};

/// Admits requests by a [`RateLimiter`] over all processes, or by one for each key.
///
/// In any window no more requests reach the inner service than the limiter admits, whichever processes serve
/// them, crash or are paused: under the conditions of [`RateLimiter`]. The layer passes a request on directly
/// after it has checked that its admission is fresh.
///
/// A request over the limit is answered at once with 429, or after [`with_wait`](Self::with_wait). The answer
/// has no body, and these fields:
///
/// * `Retry-After`: the time after which another request can be admitted, in whole seconds, rounded up.
/// * `RateLimit` and `RateLimit-Policy`, of draft-ietf-httpapi-ratelimit-headers-10:
///   `RateLimit: "default";r=0;t=30` and `RateLimit-Policy: "default";q=100;w=60`.
///
/// A response to an admitted request has the field `RateLimit-Policy` as well. No response has it if the
/// limit [can change](RateLimiter::new_shared). A response to an admitted request has no `RateLimit`, since
/// the number of starts that are left would cost a read. A limit does not count requests that another layer
/// refuses before this one. Layers outside of this one see every request.
///
/// The admission is in the extensions of the request, as `Arc<Admission>`: a handler that starts late checks
/// [`Admission::is_fresh`].
///
/// # Ordering and fairness
///
/// As [`RateLimiter`]. With [`keyed`](Self::keyed), keys do not wait for each other.
///
/// # Cost
///
/// As [`RateLimiter`]: one write of the ensemble records the requests that a process has at the same time.
/// With [`RateLimiter::with_ahead`] most requests wait for no round trip.
///
/// # Outages
///
/// Without an answer of ZooKeeper the layer fails closed: it answers 503 with `Retry-After: 1`. With
/// [`fail_open`](Self::fail_open) it passes such requests on, and nothing limits them. The first requests of
/// an outage wait for as long as the limiter does: for the manager's operation timeout, or for the time of
/// [`with_wait`](Self::with_wait). Give the limiter a manager
/// [`with_operation_timeout`](lockkeeper::ConnectionManager::with_operation_timeout) that a request may wait.
/// After the first of them has failed, one request at a time asks ZooKeeper, and all others are answered at
/// once. The beginning and the end of an outage are logged once for each layer, and not for each request.
///
/// A request that waits behind other contenders when an outage begins is refused with 429 when its time is
/// over.
///
/// An error that is no outage, such as an access list that refuses the node, is answered in the same way. It
/// is logged once for each layer. With the feature `metrics` every request is counted.
///
/// # Cancel safety
///
/// A dropped request leaves nothing behind. It may use up a start.
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
/// use lockkeeper::{ConnectionManager, KeyedRateLimiter};
/// use lockkeeper_tower::RateLimitLayer;
///
/// let manager = ConnectionManager::connect(&servers).await?; // host:port,host:port,…
/// // An answer that takes longer is an outage.
/// let manager = manager.with_operation_timeout(Duration::from_secs(1))?;
///
/// // 100 requests a minute of each customer, and of all requests without a customer together.
/// let limiters = KeyedRateLimiter::new(&manager, "/limits/customers", 100, Duration::from_secs(60))?;
/// let limits = RateLimitLayer::keyed(limiters, |request| {
///     let customer = request.headers.get("x-customer").and_then(|name| name.to_str().ok());
///     Some(customer.unwrap_or("anonymous").to_owned())
/// });
/// let service: Router = Router::new().route("/", get(async || "hello")).layer(limits);
/// # drop(service);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RateLimitLayer {
    limits: Arc<Limits>,
    wait: Duration,
    fails_open: bool,
    policy_name: PolicyName,
    policy: Option<HeaderValue>,
    outage: Arc<Outage>,
}

/// The service of a [`RateLimitLayer`].
pub type RateLimitService<S> = GateService<S, RateLimitLayer>;

enum Limits {
    One(RateLimiter),
    Keyed { limiters: KeyedRateLimiter, key_of: Box<KeyOf> },
}

impl RateLimitLayer {
    /// Limits all requests together.
    #[must_use]
    pub fn new(limiter: RateLimiter) -> Self {
        let (starts, window) = (limiter.starts(), limiter.window());
        Self::with(Limits::One(limiter), starts, window)
    }

    /// Limits the requests of each key, as `key_of` returns it: a customer, a tenant, an address, a path.
    ///
    /// A request for which it returns `None` is not limited. To limit such requests together, return a key
    /// for all of them. A key that can be none, because it is empty or too long for a path, is answered with
    /// 400: also during an outage, and with [`fail_open`](Self::fail_open).
    ///
    /// Each key in use is a node of ZooKeeper. So let no caller choose its keys freely: take the key from
    /// what was authenticated before this layer.
    #[must_use]
    pub fn keyed(
        limiters: KeyedRateLimiter,
        key_of: impl Fn(&Parts) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        let (starts, window) = (limiters.starts(), limiters.window());
        Self::with(Limits::Keyed { limiters, key_of: Box::new(key_of) }, Some(starts), window)
    }

    fn with(limits: Limits, starts: Option<u32>, window: Duration) -> Self {
        RequestOutcome::show_all(Self::LAYER);
        let policy_name = PolicyName::default();
        let policy = starts.and_then(|starts| policy_name.policy(starts, window));
        let outage = Arc::new(Outage::new(Self::LAYER));
        Self {
            limits: Arc::new(limits),
            wait: Duration::ZERO,
            fails_open: false,
            policy_name,
            policy,
            outage,
        }
    }

    /// Waits for room for at most this time, before the layer refuses. It refuses earlier if there can be no
    /// room in time. Default: zero, the layer refuses at once.
    #[must_use]
    pub fn with_wait(self, wait: Duration) -> Self {
        Self { wait, ..self }
    }

    /// Passes requests on that nothing was decided on, because ZooKeeper did not answer. Nothing limits them.
    /// Default: the layer fails closed.
    #[must_use]
    pub fn fail_open(self) -> Self {
        Self { fails_open: true, ..self }
    }

    /// Sets the name of the policy in the fields `RateLimit` and `RateLimit-Policy`. Give each of several
    /// layers a name of its own. Default: `default`.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the name has other characters than the printable ones of ASCII.
    pub fn with_policy_name(self, name: &str) -> Result<Self, Error> {
        let Some(policy_name) = PolicyName::new(name) else {
            let advice = "take letters, digits and other printable characters of ASCII";
            return Err(
                ConfigError::Setting { name: "policy name", value: format!("{name:?}"), advice }.into()
            );
        };
        let (starts, window) = match &*self.limits {
            Limits::One(limiter) => (limiter.starts(), limiter.window()),
            Limits::Keyed { limiters, .. } => (Some(limiters.starts()), limiters.window()),
        };
        let policy = starts.and_then(|starts| policy_name.policy(starts, window));
        Ok(Self { policy, policy_name, ..self })
    }

    /// Waits for an admission.
    async fn admit(&self, limiter: &RateLimiter) -> Result<Admission, Denial> {
        let admit = async |wait| limiter.admit_fresh_timeout(wait).await.map(Some);
        self.outage.ask(admit(self.wait), admit(Duration::ZERO)).await
    }

    fn refuse(&self, retry_after: Option<Duration>) -> Refusal {
        let retry_after = retry_after.unwrap_or(SOON);
        let mut refusal = Refusal::new(StatusCode::TOO_MANY_REQUESTS).with_retry_after(retry_after);
        if let Some(value) = self.policy_name.used_up(retry_after) {
            refusal = refusal.with(RATE_LIMIT, value);
        }
        match &self.policy {
            Some(policy) => refusal.with(RATE_LIMIT_POLICY, policy.clone()),
            None => refusal,
        }
    }
}

impl Gate for RateLimitLayer {
    const LAYER: &'static str = "rate_limit";

    async fn enter(&self, parts: &mut Parts) -> (RequestOutcome, Result<Entry, Refusal>) {
        let of_key;
        let limiter = match &*self.limits {
            Limits::One(limiter) => limiter,
            Limits::Keyed { limiters, key_of } => {
                let Some(key) = key_of(parts) else {
                    return (RequestOutcome::Passed, Ok(Entry::default()));
                };
                let Ok(limiter) = limiters.of(&key) else {
                    return (RequestOutcome::BadKey, Err(Refusal::bad_key()));
                };
                of_key = limiter;
                &of_key
            }
        };
        match self.admit(limiter).await {
            Ok(admission) => {
                parts.extensions.insert(Arc::new(admission));
                let field = self.policy.clone().map(|policy| (RATE_LIMIT_POLICY, policy));
                (RequestOutcome::Passed, Ok(Entry { field, hold: None }))
            }
            Err(Denial::Busy(retry_after)) => (RequestOutcome::Refused, Err(self.refuse(retry_after))),
            Err(Denial::Undecided) if self.fails_open => {
                (RequestOutcome::UndecidedPassed, Ok(Entry::default()))
            }
            Err(Denial::Undecided) => (RequestOutcome::UndecidedRefused, Err(Refusal::unavailable())),
        }
    }
}
impl<S> Layer<S> for RateLimitLayer {
    type Service = RateLimitService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        GateService::new(inner, self)
    }
}

impl Debug for RateLimitLayer {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let limits: &dyn Debug = match &*self.limits {
            Limits::One(limiter) => limiter,
            Limits::Keyed { limiters, .. } => limiters,
        };
        formatter
            .debug_struct("RateLimitLayer")
            .field("limits", limits)
            .field("wait", &self.wait)
            .field("fails_open", &self.fails_open)
            .finish_non_exhaustive()
    }
}
