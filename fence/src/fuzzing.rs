//! What `tests/fuzz` runs on random bytes: the header of a request. No part of the API.

use crate::http::fuzzing::fencing_headers;

/// What runs on an input, by the name of its folders in `tests/fuzz`.
#[expect(clippy::type_complexity, reason = "a name and a function")]
pub const TARGETS: &[(&str, fn(&[u8]))] = &[("fencing_headers", fencing_headers)];

#[cfg(test)]
#[path = "../../tests/fuzz/src/replay.rs"]
mod replay;

#[cfg(test)]
mod tests {
    #[test]
    fn the_kept_headers_keep_the_rules() {
        super::replay::replay(super::TARGETS);
    }
}
