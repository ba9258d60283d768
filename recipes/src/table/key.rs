//! The name of the node of a key: pure, and the one place that knows it.
//!
//! A key is any text but the empty one. What ZooKeeper refuses in a name is written as the bytes of its
//! UTF-8, each as `%` and two hexadecimal digits, and so is `%` itself. A register creates a node by means of
//! a node `<name>-creation-<uuid>` beside it: no key has a name with `-creation-`, so the two are never
//! confused.

use std::borrow::Cow;

use lockkeeper_core::{ConfigError, Error, ZnodePath};

/// In the names of the nodes by which registers create others.
const CREATION: &str = "-creation-";

/// The name of the node of a key.
pub(super) fn name_of(key: &str) -> Result<String, Error> {
    if key.is_empty() {
        let advice = "give the entry a key of one character or more";
        return Err(ConfigError::Setting { name: "key", value: "empty".to_owned(), advice }.into());
    }
    Ok(escaped(key))
}

/// The key of a node with this name; `None` if it is not the node of a key.
pub(super) fn key_of(name: &str) -> Option<String> {
    if name.is_empty() || name.contains(CREATION) {
        return None;
    }
    let mut parts = name.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    let key = String::from_utf8(bytes).ok()?;
    // One key has one name.
    (escaped(&key) == name).then_some(key)
}

fn escaped(key: &str) -> String {
    let is_dots = matches!(key, "." | "..");
    let mut name = String::with_capacity(key.len());
    for (at, character) in key.char_indices() {
        let begins_creation = || key.get(at..).is_some_and(|rest| rest.starts_with(CREATION));
        let is_refused = match character {
            '%' | '/' => true,
            '.' => is_dots && at == 0,
            '-' => begins_creation(),
            ' '..='~' => false,
            other => ZnodePath::try_from(format!("/a{other}a")).is_err(),
        };
        if !is_refused {
            name.push(character);
            continue;
        }
        for byte in character.encode_utf8(&mut [0; 4]).bytes() {
            name.push_str(&format!("%{byte:02X}"));
        }
    }
    name
}

/// The path of the entry of a key below `table`.
pub(super) fn path_of(table: &ZnodePath, key: &str) -> Result<ZnodePath, Error> {
    Ok(table.child(&name_of(key)?)?)
}

/// A key for people.
pub(super) fn shown(name: &str) -> Cow<'_, str> {
    key_of(name).map_or(Cow::Borrowed(name), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn keys() -> impl Strategy<Value = String> {
        let odd = "[-./%a-c\u{0}-\u{1f}\u{7f}-\u{9f}ä€\u{fffe}\u{ffff}\u{f8ff}\u{10ffff}]{1,12}";
        let part = prop_oneof![Just("-creation-"), Just("creation-"), Just("-"), Just("%2D"), Just("..")];
        let built = proptest::collection::vec(part, 1..5).prop_map(|parts| parts.concat());
        prop_oneof![odd, built, "\\PC{1,20}", any::<String>()].prop_filter("empty", |key| !key.is_empty())
    }

    proptest! {
        #[test]
        fn every_key_has_one_name_that_zookeeper_takes_and_comes_back_from_it(key in keys()) {
            let name = name_of(&key).unwrap();
            let root: ZnodePath = "/table".parse().unwrap();
            prop_assert!(root.child(&name).is_ok(), "{:?}", name);
            prop_assert!(!name.contains(CREATION));
            prop_assert_eq!(key_of(&name), Some(key));
        }

        #[test]
        fn a_name_is_that_of_its_key_or_of_none(name in "[-%.a-zA-F0-9]{1,12}") {
            if let Some(key) = key_of(&name) {
                prop_assert_eq!(name_of(&key).unwrap(), name);
            }
        }
    }

    #[test]
    fn a_plain_key_is_its_own_name() {
        for key in ["seat 42", "web-1.example.org:8080", "größe", "a-creation", "..."] {
            assert_eq!(name_of(key).unwrap(), key);
        }
        for (key, name) in [("a/b", "a%2Fb"), ("100%", "100%25"), (".", "%2E"), ("..", "%2E.")] {
            assert_eq!(name_of(key).unwrap(), name);
        }
        assert_eq!(name_of("a-creation-creation-b").unwrap(), "a%2Dcreation%2Dcreation-b");
        assert!(name_of("").is_err());
        for name in ["a%2", "a%2f", "%41", "a-creation-b", "", "%FF", "%+1"] {
            assert_eq!(key_of(name), None, "{name}");
        }
    }
}
