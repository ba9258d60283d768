use std::fmt::{self, Debug, Formatter};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

/// The error of a body, of any kind.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

pin_project! {
    /// The body of a response behind a layer: that of the inner service, or an empty one if the layer
    /// answered.
    pub struct ResponseBody<B> {
        #[pin]
        inner: Option<B>,
    }
}

impl<B> ResponseBody<B> {
    pub(crate) fn of(body: B) -> Self {
        Self { inner: Some(body) }
    }

    /// Without data.
    pub(crate) fn empty() -> Self {
        Self { inner: None }
    }
}

impl<B> Body for ResponseBody<B>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        let Some(inner) = self.project().inner.as_pin_mut() else { return Poll::Ready(None) };
        let frame = ready!(inner.poll_frame(context));
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

impl<B> Debug for ResponseBody<B> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ResponseBody").field("is_empty", &self.inner.is_none()).finish()
    }
}
