use std::task::{Context, Poll};

use http::Request;
use lockkeeper_lock::FencingToken;
use tower_layer::Layer;
use tower_service::Service;

use super::header::{FENCING_TOKEN, header_value};

/// Sends the token of a request: the [`FencingToken`] among its extensions becomes the header. A request
/// without one passes as it is.
///
/// `request.extensions_mut().insert(guard.fencing_token())` gives a request its token.
#[derive(Clone, Copy, Debug, Default)]
pub struct FencingTokenLayer;

impl FencingTokenLayer {
    /// The layer of a client.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }
}

impl<S> Layer<S> for FencingTokenLayer {
    type Service = FencingTokenService<S>;

    fn layer(&self, inner: S) -> FencingTokenService<S> {
        FencingTokenService { inner }
    }
}

/// A client behind a [`FencingTokenLayer`].
#[derive(Clone, Debug)]
pub struct FencingTokenService<S> {
    inner: S,
}

impl<S: Service<Request<B>>, B> Service<Request<B>> for FencingTokenService<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<B>) -> S::Future {
        if let Some(token) = request.extensions().get::<FencingToken>() {
            let value = header_value(*token);
            request.headers_mut().insert(FENCING_TOKEN, value);
        }
        self.inner.call(request)
    }
}
