//! What all layers have in common: a decision before the inner service is called.

use std::future::Future;
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Request, Response};
use http_body::Body;
use tower_service::Service;

use crate::body::ResponseBody;
use crate::hold::HoldWatch;
use crate::outcome::RequestOutcome;
use crate::refusal::Refusal;

/// The decision of a layer on a request.
pub trait Gate: Clone + Send + Sync + 'static {
    /// The name of the layer, in the log and in the metrics.
    const LAYER: &'static str;

    /// Decides, and puts what the handler may need into the extensions of the request.
    ///
    /// The future is dropped when the request is dropped, at any await.
    fn enter(
        &self,
        parts: &mut Parts,
    ) -> impl Future<Output = (RequestOutcome, Result<Entry, Refusal>)> + Send;
}

/// A request may pass.
#[derive(Debug, Default)]
pub struct Entry {
    /// The field that the layer adds to the response.
    pub(crate) field: Option<(HeaderName, HeaderValue)>,
    /// What the request is served under.
    pub(crate) hold: Option<HoldWatch>,
}

impl Entry {
    pub(crate) fn under(hold: HoldWatch) -> Self {
        Self { field: None, hold: Some(hold) }
    }
}

/// The service of a layer of this crate, around an inner service `S`.
///
/// Its readiness is that of the inner service. A request that the layer refuses never reaches the inner
/// service, and its answer has no body. A refusal is a response, so the error type is that of the inner
/// service.
#[derive(Debug)]
pub struct GateService<S, G> {
    inner: S,
    gate: Arc<G>,
}

impl<S, G: Gate> GateService<S, G> {
    pub(crate) fn new(inner: S, gate: &G) -> Self {
        Self { inner, gate: Arc::new(gate.clone()) }
    }
}

// Not derived: the gate need not be cloned.
impl<S: Clone, G> Clone for GateService<S, G> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), gate: Arc::clone(&self.gate) }
    }
}

impl<S, G, B, R> Service<Request<B>> for GateService<S, G>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    G: Gate,
    B: Send + 'static,
    R: Body,
{
    type Response = Response<ResponseBody<R>>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Self::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // The service that was polled ready takes the request. The clone has to be polled first.
        let clone = self.inner.clone();
        let mut inner = mem::replace(&mut self.inner, clone);
        let gate = Arc::clone(&self.gate);
        Box::pin(async move {
            let (mut parts, body) = request.into_parts();
            let (outcome, decision) = gate.enter(&mut parts).await;
            outcome.count(G::LAYER);
            let Entry { field, mut hold } = match decision {
                Ok(entry) => entry,
                Err(refusal) => return Ok(refusal.into_response()),
            };
            let work = inner.call(Request::from_parts(parts, body));
            let worked = match &mut hold {
                Some(hold) => hold.run(work).await,
                None => Ok(work.await),
            };
            let Ok(response) = worked else {
                RequestOutcome::Lost.count(G::LAYER);
                return Ok(Refusal::unavailable().into_response());
            };
            let mut response = response?.map(|body| ResponseBody::under(hold, body));
            if let Some((name, value)) = field {
                response.headers_mut().append(name, value);
            }
            Ok(response)
        })
    }
}
