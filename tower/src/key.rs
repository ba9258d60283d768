//! The key of a request.

use http::request::Parts;

/// Takes the key of a request from its parts.
pub(crate) type KeyOf = dyn Fn(&Parts) -> Option<String> + Send + Sync;

/// The name of the node of a key, as a `KeyedRateLimiter` has it. Different keys have different names.
pub(crate) fn node_name(key: &str) -> String {
    let mut name = String::with_capacity(key.len());
    for byte in key.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => name.push(char::from(byte)),
            _ => name.push_str(&format!("%{byte:02x}")),
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_are_no_names_are_written_with_hexadecimal_digits() {
        for (key, name) in
            [("order-7", "order-7"), (".", "%2e"), ("a/b", "a%2fb"), ("%2e", "%252e"), ("ü", "%c3%bc")]
        {
            assert_eq!(node_name(key), name);
        }
    }
}
