//! The fields of draft-ietf-httpapi-ratelimit-headers-10.

use std::time::Duration;

use http::{HeaderName, HeaderValue};

use crate::refusal::whole_seconds;

pub(super) const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
pub(super) const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// The name of a policy as a string of structured fields (RFC 9651), in quotes. `None` if the name has
/// characters that such a string cannot have.
#[derive(Clone, Debug)]
pub(super) struct PolicyName(String);

impl Default for PolicyName {
    fn default() -> Self {
        Self("\"default\"".to_owned())
    }
}

impl PolicyName {
    pub(super) fn new(name: &str) -> Option<Self> {
        if !name.chars().all(|of| matches!(of, ' '..='~')) {
            return None;
        }
        Some(Self(format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))))
    }

    /// What the policy admits. A window that is no whole number of seconds is rounded up: the field has no
    /// parts of a second, and a caller that keeps to the longer window keeps to the limit.
    pub(super) fn policy(&self, starts: u32, window: Duration) -> Option<HeaderValue> {
        HeaderValue::try_from(format!("{};q={starts};w={}", self.0, whole_seconds(window))).ok()
    }

    /// Nothing is left until this time has passed.
    pub(super) fn used_up(&self, retry_after: Duration) -> Option<HeaderValue> {
        HeaderValue::try_from(format!("{};r=0;t={}", self.0, whole_seconds(retry_after))).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_written_as_a_structured_field() {
        for (name, starts, millis, field) in [
            ("default", 100, 60_000, "\"default\";q=100;w=60"),
            ("per customer", 1, 500, "\"per customer\";q=1;w=1"),
            ("a\"b\\c", 7, 1_500, "\"a\\\"b\\\\c\";q=7;w=2"),
        ] {
            let name = PolicyName::new(name).unwrap();
            assert_eq!(name.policy(starts, Duration::from_millis(millis)).unwrap(), field);
        }
        let name = PolicyName::new("default").unwrap();
        assert_eq!(name.used_up(Duration::from_millis(29_001)).unwrap(), "\"default\";r=0;t=30");
    }

    #[test]
    fn a_name_that_no_field_can_have_is_refused() {
        for name in ["täglich", "two\nlines", "\u{7f}"] {
            assert!(PolicyName::new(name).is_none(), "{name:?}");
        }
    }
}
