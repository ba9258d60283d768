use http::{HeaderMap, HeaderValue, StatusCode};

use super::header::{FENCING_TOKEN, header_value, token_of};

/// The values of the header, one in a line.
pub(crate) fn fencing_headers(data: &[u8]) {
    let mut headers = HeaderMap::new();
    for value in data.split(|byte| *byte == b'\n').filter_map(|line| HeaderValue::from_bytes(line).ok()) {
        headers.append(FENCING_TOKEN, value);
    }
    match token_of(&headers) {
        Ok(token) => {
            assert_eq!(headers.len(), 1, "one of several tokens is admitted");
            let sent = HeaderMap::from_iter([(FENCING_TOKEN, header_value(token))]);
            assert_eq!(token_of(&sent), Ok(token));
        }
        Err(refusal) => assert_eq!(refusal == StatusCode::PRECONDITION_REQUIRED, headers.is_empty()),
    }
}
