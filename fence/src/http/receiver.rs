use std::fmt::{self, Debug, Formatter};
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::request::Parts;
use http::{Request, Response, StatusCode};
use lockkeeper_lock::FencingToken;
use tower_layer::Layer;
use tower_service::Service;

use super::header::{FENCING_TOKEN, header_value, token_of};
use super::store::FenceStore;
use super::undecided::Undecided;
use crate::error::FenceError;

/// Refuses requests with a stale token, before the service gets them: see [the table](super).
///
/// The resource of a request is what `resource` says, such as its path; a request for which it says `None`
/// passes without a token, as a read does. Behind the layer the [`FencingToken`] is among the extensions of
/// the request, for the check in the service's own transaction.
///
/// When the store does not decide, the log says why, at `warn`: once, and not for each request. When it
/// decides again, a line at `info` has the number of the requests that were answered with 503.
///
/// A refusal has an empty body, so the body of the service needs a default, as that of axum has.
pub struct FenceLayer<S, F> {
    fence: Arc<Shared<S, F>>,
}

struct Shared<S, F> {
    store: S,
    resource: F,
    undecided: Undecided,
}

impl<S: FenceStore, F: Fn(&Parts) -> Option<String>> FenceLayer<S, F> {
    /// The layer of a service whose resources have their marks in this store.
    #[must_use]
    pub fn new(store: S, resource: F) -> Self {
        Self { fence: Arc::new(Shared { store, resource, undecided: Undecided::default() }) }
    }
}

impl<S, F> Clone for FenceLayer<S, F> {
    fn clone(&self) -> Self {
        Self { fence: Arc::clone(&self.fence) }
    }
}

impl<S: Debug, F> Debug for FenceLayer<S, F> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("FenceLayer").field("store", &self.fence.store).finish_non_exhaustive()
    }
}

impl<S, F, I> Layer<I> for FenceLayer<S, F> {
    type Service = FenceService<S, F, I>;

    fn layer(&self, inner: I) -> FenceService<S, F, I> {
        FenceService { layer: self.clone(), inner }
    }
}

/// A service behind a [`FenceLayer`].
pub struct FenceService<S, F, I> {
    layer: FenceLayer<S, F>,
    inner: I,
}

impl<S, F, I: Clone> Clone for FenceService<S, F, I> {
    fn clone(&self) -> Self {
        Self { layer: self.layer.clone(), inner: self.inner.clone() }
    }
}

impl<S: Debug, F, I: Debug> Debug for FenceService<S, F, I> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let mut debug = formatter.debug_struct("FenceService");
        debug.field("layer", &self.layer).field("inner", &self.inner).finish()
    }
}

impl<S, F, I, B, R> Service<Request<B>> for FenceService<S, F, I>
where
    S: FenceStore,
    F: Fn(&Parts) -> Option<String> + Send + Sync + 'static,
    I: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    I::Future: Send,
    B: Send + 'static,
    R: Default,
{
    type Response = Response<R>;
    type Error = I::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<R>, I::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), I::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (mut parts, body) = request.into_parts();
        // The one that is ready serves this request; its clone gets ready for the next one.
        let clone = self.inner.clone();
        let mut inner = mem::replace(&mut self.inner, clone);
        let fence = Arc::clone(&self.layer.fence);
        Box::pin(async move {
            let Some(resource) = (fence.resource)(&parts) else {
                return inner.call(Request::from_parts(parts, body)).await;
            };
            let token = match token_of(&parts.headers) {
                Ok(token) => token,
                Err(status) => return Ok(refusal(status, None)),
            };
            let admitted = fence.store.admit(&resource, token).await;
            match &admitted {
                Ok(_) | Err(FenceError::Stale(_)) => fence.undecided.decided(),
                Err(FenceError::InvalidResource { .. }) => {}
                Err(error) => fence.undecided.failed(error),
            }
            let admission = match admitted {
                Ok(admission) => admission,
                Err(FenceError::Stale(stale)) => return Ok(refusal(StatusCode::CONFLICT, Some(stale.newer))),
                Err(FenceError::InvalidResource { .. }) => return Ok(refusal(StatusCode::BAD_REQUEST, None)),
                Err(_) => return Ok(refusal(StatusCode::SERVICE_UNAVAILABLE, None)),
            };
            parts.extensions.insert(token);
            let answer = inner.call(Request::from_parts(parts, body)).await;
            drop(admission);
            answer
        })
    }
}

fn refusal<R: Default>(status: StatusCode, newer: Option<FencingToken>) -> Response<R> {
    let mut response = Response::new(R::default());
    *response.status_mut() = status;
    if let Some(newer) = newer {
        response.headers_mut().insert(FENCING_TOKEN, header_value(newer));
    }
    response
}
