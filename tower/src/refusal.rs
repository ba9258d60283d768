//! The answers of the layers themselves.

use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{HeaderName, HeaderValue, Response, StatusCode};

use crate::body::ResponseBody;

/// After a refusal that names no time.
pub(crate) const SOON: Duration = Duration::from_secs(1);

/// A response of a layer in place of the inner service's: a status and fields, and no body.
#[derive(Clone, Debug)]
pub struct Refusal {
    status: StatusCode,
    fields: Vec<(HeaderName, HeaderValue)>,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode) -> Self {
        Self { status, fields: Vec::new() }
    }

    /// No answer of ZooKeeper: 503.
    pub(crate) fn unavailable() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE).with_retry_after(SOON)
    }

    /// The key of the request can be no key: 400.
    pub(crate) fn bad_key() -> Self {
        Self::new(StatusCode::BAD_REQUEST)
    }

    pub(crate) fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.fields.push((name, value));
        self
    }

    pub(crate) fn with_retry_after(self, wait: Duration) -> Self {
        self.with(RETRY_AFTER, HeaderValue::from(whole_seconds(wait)))
    }

    pub(crate) fn into_response<B>(self) -> Response<ResponseBody<B>> {
        let mut response = Response::new(ResponseBody::empty());
        *response.status_mut() = self.status;
        for (name, value) in self.fields {
            response.headers_mut().append(name, value);
        }
        response
    }
}

/// Rounded up, as a caller that comes earlier is refused again. At least one: zero would ask for the next
/// request at once.
pub(crate) fn whole_seconds(wait: Duration) -> u64 {
    let rounded = wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0));
    // The fields of the IETF's draft take integers of at most fifteen digits.
    rounded.clamp(1, 999_999_999_999_999)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_rounded_up_to_whole_seconds() {
        for (millis, seconds) in [(0, 1), (1, 1), (999, 1), (1_000, 1), (1_001, 2), (60_000, 60)] {
            assert_eq!(whole_seconds(Duration::from_millis(millis)), seconds, "{millis} ms");
        }
        assert_eq!(whole_seconds(Duration::MAX), 999_999_999_999_999);
    }
}
