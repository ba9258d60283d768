use std::fmt::{self, Debug, Formatter};
use std::ops::ControlFlow;
use std::sync::Arc;

use http::header::LOCATION;
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use lockkeeper::election::Leader;
use lockkeeper::error::ConfigError;
use lockkeeper::{ConnectionManager, Election, Error, Leadership, Watch};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tower_layer::Layer;
use tracing::error;

use crate::gate::{Entry, Gate, GateService};
use crate::hold::HoldWatch;
use crate::outcome::RequestOutcome;
use crate::refusal::Refusal;

/// Serves requests in the leader of an [`Election`] alone. All other processes answer 503 with
/// `Retry-After: 1`, or send their callers to the leader by [`with_redirect`](Self::with_redirect).
///
/// The layer campaigns in the background, in one term after another, as [`Election::lead`]. A request is
/// served while this process leads, and the leadership is checked before each poll of its work.
///
/// The leadership is in the extensions of the request, as `Arc<Leadership>`: a handler gives its writes the
/// [fencing token](lockkeeper::Guard::fencing_token), or makes them by [`txn`](lockkeeper::Guard::txn). No
/// election can stop a process that is paused between a check and a write. A handler that keeps a clone of
/// the leadership delays the resignation at a shutdown.
///
/// # Ordering and fairness
///
/// As [`Election`].
///
/// # Cost
///
/// No request of ZooKeeper for a request: the layer knows whether this process leads. For each leader one
/// campaign, and a list and a read of each process.
///
/// # Session loss
///
/// The leadership of an expired session is lost. The work on its requests is dropped then, before another
/// process can lead, and they are answered with 503; a body that has begun ends with the error
/// [`HoldLost`](crate::HoldLost). What the handler did until then remains. The process campaigns again.
///
/// # Outages
///
/// Without an answer of ZooKeeper the leader serves until its lease runs out, and then answers 503. Another
/// process answers 503, or sends its callers to the last leader that it knows. A leader never fails open.
///
/// # Shutdown
///
/// The layer resigns when the last clone of the layer and of its services is dropped, and when a shutdown of
/// the manager begins: then as soon as the requests in progress have ended.
///
/// # Cancel safety
///
/// A dropped request changes nothing.
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
/// use lockkeeper::{ConnectionManager, Election, Leadership};
/// use lockkeeper_tower::LeaderLayer;
///
/// let manager = ConnectionManager::connect(&servers).await?; // host:port,host:port,…
/// // The id is the address at which the others, and their callers, reach this process.
/// let election = Election::new(&manager, "/elections/planner", "http://planner-3:8080")?;
/// let leader = LeaderLayer::campaign(&manager, election).await?.with_redirect(|leader, request| {
///     Some(format!("{}{}", leader.id(), request.uri.path_and_query()?))
/// });
/// let plan = async |Extension(leadership): Extension<Arc<Leadership>>| {
///     format!("planned by the leader, fenced by {}", leadership.fencing_token())
/// };
/// let service: Router = Router::new().route("/plan", post(plan)).layer(leader);
/// # drop(service);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct LeaderLayer {
    /// The leadership of this process. The campaign ends with the last receiver.
    led: watch::Receiver<Option<Arc<Leadership>>>,
    seen: Arc<SeenElection>,
    redirect: Option<Arc<RedirectOf>>,
}

/// The service of a [`LeaderLayer`].
pub type LeaderService<S> = GateService<S, LeaderLayer>;

/// The address to which a request is sent.
type RedirectOf = dyn Fn(&Leader, &Parts) -> Option<String> + Send + Sync;

/// The election, as this process sees it.
#[derive(Debug)]
struct SeenElection {
    /// The id of this participant.
    id: String,
    leaders: Watch<Option<Leader>>,
}

impl LeaderLayer {
    /// Begins to campaign in the background, with the id of this election. Waits for the first answer that
    /// says who leads, within the manager's operation timeout.
    ///
    /// `manager` is that of the election. Give each process an id of its own. The campaign ends by an error
    /// that another try does not change, such as an access list that refuses the node: it is logged, and this
    /// process leads no more.
    ///
    /// # Errors
    ///
    /// As [`Election::observe`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the campaign ends.
    pub async fn campaign(manager: &ConnectionManager, election: Election) -> Result<Self, Error> {
        let runtime = Handle::try_current().map_err(|_| ConfigError::NoRuntime)?;
        RequestOutcome::show_all(Self::LAYER);
        let leaders = election.observe().await?;
        let (shown, led) = watch::channel(None);
        let seen = Arc::new(SeenElection { id: election.id().to_owned(), leaders });
        runtime.spawn(campaign(manager.clone(), election, shown));
        Ok(Self { led, seen, redirect: None })
    }

    /// Sends callers to the leader, by 307 with the address that `redirect` returns as `Location`. It returns
    /// `None` if there is none, and the answer is 503, as it is if nobody leads. Default: 503.
    ///
    /// An observation may be late: the process may lead no more, and send its callers on.
    #[must_use]
    pub fn with_redirect(
        self,
        redirect: impl Fn(&Leader, &Parts) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        Self { redirect: Some(Arc::new(redirect)), ..self }
    }

    /// Whether this process leads now.
    #[must_use]
    pub fn is_leading(&self) -> bool {
        self.leadership().is_some()
    }

    fn leadership(&self) -> Option<Arc<Leadership>> {
        self.led.borrow().clone().filter(|leadership| leadership.is_valid())
    }

    /// The address of another process that leads.
    fn address(&self, parts: &Parts) -> Option<HeaderValue> {
        let redirect = self.redirect.as_ref()?;
        // Our own node may be the first one although we do not lead any more, or do not know of it yet.
        let leader = self.seen.leaders.state().filter(|leader| leader.id() != self.seen.id)?;
        HeaderValue::try_from(redirect(&leader, parts)?).ok()
    }
}

/// Leads until the layer is dropped or the manager is shut down.
async fn campaign(
    manager: ConnectionManager,
    election: Election,
    shown: watch::Sender<Option<Arc<Leadership>>>,
) {
    let term = async |leadership: Arc<Leadership>| {
        let _shown = ShownTerm::begin(&shown, leadership);
        tokio::select! {
            biased;
            () = shown.closed() => {}
            () = manager.closing() => {}
        }
        ControlFlow::Break(())
    };
    let led = tokio::select! {
        biased;
        () = shown.closed() => Ok(()),
        led = election.lead(term) => led,
    };
    match led {
        Ok(()) | Err(Error::Closed) => {}
        Err(error) => {
            error!(path = %manager.whole_path(election.path()), %error, "a layer does not campaign any more");
        }
    }
}

/// The leadership that a layer shows. Its drop hides it: at the end of the term, and at its loss.
struct ShownTerm<'a>(&'a watch::Sender<Option<Arc<Leadership>>>);

impl<'a> ShownTerm<'a> {
    fn begin(shown: &'a watch::Sender<Option<Arc<Leadership>>>, leadership: Arc<Leadership>) -> Self {
        shown.send_replace(Some(leadership));
        Self(shown)
    }
}

impl Drop for ShownTerm<'_> {
    fn drop(&mut self) {
        self.0.send_replace(None);
    }
}

impl Gate for LeaderLayer {
    const LAYER: &'static str = "leader";

    async fn enter(&self, parts: &mut Parts) -> (RequestOutcome, Result<Entry, Refusal>) {
        if let Some(leadership) = self.leadership() {
            let hold = HoldWatch::new(&leadership);
            parts.extensions.insert(leadership);
            return (RequestOutcome::Passed, Ok(Entry::under(hold)));
        }
        match self.address(parts) {
            Some(address) => {
                let refusal = Refusal::new(StatusCode::TEMPORARY_REDIRECT).with(LOCATION, address);
                (RequestOutcome::Redirected, Err(refusal))
            }
            None => (RequestOutcome::Refused, Err(Refusal::unavailable())),
        }
    }
}

impl<S> Layer<S> for LeaderLayer {
    type Service = LeaderService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        GateService::new(inner, self)
    }
}

impl Debug for LeaderLayer {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("LeaderLayer")
            .field("id", &self.seen.id)
            .field("is_leading", &self.is_leading())
            .finish_non_exhaustive()
    }
}
