//! What all layers have in common: a decision before the inner service is called.

use std::future::Future;
use std::mem;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Request, Response};
use tower_service::Service;

use crate::body::ResponseBody;
use crate::refusal::Refusal;

/// The decision of a layer on a request.
pub trait Gate: Clone + Send + Sync + 'static {
    /// Decides, and puts what the handler may need into the extensions of the request.
    ///
    /// The future is dropped when the request is dropped, at any await.
    fn enter(&self, parts: &mut Parts) -> impl Future<Output = Result<Entry, Refusal>> + Send;
}

/// A request may pass.
#[derive(Debug, Default)]
pub struct Entry {
    /// The field that the layer adds to the response.
    pub(crate) field: Option<(HeaderName, HeaderValue)>,
}

/// The service of a layer of this crate, around an inner service `S`.
///
/// Its readiness is that of the inner service. A request that the layer refuses never reaches the inner
/// service, and its answer has no body. A refusal is a response, so the error type is that of the inner
/// service.
#[derive(Clone, Debug)]
pub struct GateService<S, G> {
    inner: S,
    gate: G,
}

impl<S, G> GateService<S, G> {
    pub(crate) fn new(inner: S, gate: G) -> Self {
        Self { inner, gate }
    }
}

impl<S, G, B, R> Service<Request<B>> for GateService<S, G>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    G: Gate,
    B: Send + 'static,
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
        let gate = self.gate.clone();
        Box::pin(async move {
            let (mut parts, body) = request.into_parts();
            let entry = match gate.enter(&mut parts).await {
                Ok(entry) => entry,
                Err(refusal) => return Ok(refusal.into_response()),
            };
            let mut response = inner.call(Request::from_parts(parts, body)).await?.map(ResponseBody::of);
            if let Some((name, value)) = entry.field {
                response.headers_mut().append(name, value);
            }
            Ok(response)
        })
    }
}
