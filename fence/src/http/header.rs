use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use lockkeeper_lock::FencingToken;

/// The name of the header.
pub const FENCING_TOKEN: HeaderName = HeaderName::from_static("fencing-token");

/// The value of the header for a token.
#[must_use]
pub fn header_value(token: FencingToken) -> HeaderValue {
    // Digits are valid in a header.
    HeaderValue::from_str(&token.to_decimal()).unwrap_or_else(|_| HeaderValue::from_static("0"))
}

/// The token of a request, or the status of the refusal.
pub(super) fn token_of(headers: &HeaderMap) -> Result<FencingToken, StatusCode> {
    let mut values = headers.get_all(FENCING_TOKEN).iter();
    let value = values.next().ok_or(StatusCode::PRECONDITION_REQUIRED)?;
    let token = value.to_str().ok().and_then(|text| FencingToken::from_decimal(text).ok());
    // Of two tokens, one could be stale.
    token.filter(|_| values.next().is_none()).ok_or(StatusCode::BAD_REQUEST)
}
