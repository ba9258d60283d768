use std::fmt::{self, Debug, Formatter};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::hold::{HoldLost, HoldWatch};

/// The error of a body, of any kind: that of the inner body, or [`HoldLost`].
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

pin_project! {
    /// The body of a response behind a layer: that of the inner service, or an empty one if the layer
    /// answered.
    ///
    /// It keeps the lock, the permit or the leadership of its request, and gives it up when it has ended or
    /// is dropped. If that is lost before, the body ends with the error [`HoldLost`], so that nobody takes a
    /// part for the whole.
    pub struct ResponseBody<B> {
        #[pin]
        inner: Option<B>,
        hold: Option<HoldWatch>,
    }
}

impl<B: Body> ResponseBody<B> {
    /// A body without data needs no hold.
    pub(crate) fn under(hold: Option<HoldWatch>, body: B) -> Self {
        let hold = hold.filter(|_| !body.is_end_stream());
        Self { inner: Some(body), hold }
    }
}

impl<B> ResponseBody<B> {
    /// Without data.
    pub(crate) fn empty() -> Self {
        Self { inner: None, hold: None }
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
        let mut this = self.project();
        let lost = this.hold.as_mut().map(|hold| hold.poll_lost(context));
        if let Some(Poll::Ready(lost)) = lost {
            *this.hold = None;
            this.inner.set(None);
            return Poll::Ready(Some(Err(HoldLost::from(lost).into())));
        }
        let Some(mut inner) = this.inner.as_pin_mut() else { return Poll::Ready(None) };
        let frame = ready!(inner.as_mut().poll_frame(context));
        // A reader that has all data may not ask for the end.
        if !matches!(frame, Some(Ok(_))) || inner.is_end_stream() {
            *this.hold = None;
        }
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
        formatter
            .debug_struct("ResponseBody")
            .field("is_empty", &self.inner.is_none())
            .field("hold", &self.hold)
            .finish()
    }
}
