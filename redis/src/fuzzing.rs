//! What `tests/fuzz` runs on random bytes: what Redis answers, and the names of locks. No part of the API.

use crate::name::LockName;
use crate::script::{Answer, read_grant};

/// What runs on an input, by the name of its folders in `tests/fuzz`.
#[expect(clippy::type_complexity, reason = "a name and a function")]
pub const TARGETS: &[(&str, fn(&[u8]))] = &[("redis_answers", redis_answers), ("redis_names", redis_names)];

/// The message of a grant, and the numbers that a script answers, eight bytes each.
fn redis_answers(data: &[u8]) {
    if let Some((id, token)) = std::str::from_utf8(data).ok().and_then(read_grant) {
        assert_eq!(read_grant(&format!("{id} {token}")), Some((id, token)));
    }
    let numbers = data.chunks_exact(8).filter_map(|bytes| bytes.try_into().ok());
    let numbers: Vec<i64> = numbers.map(i64::from_be_bytes).collect();
    match Answer::read(&numbers) {
        None => {}
        Some(Answer::Held { token }) => assert_eq!(numbers, [1, token.cast_signed()]),
        Some(Answer::Waits(waiting)) => {
            let ends = waiting.ends.map_or(-1, u64::cast_signed);
            assert_eq!(numbers.first(), Some(&0));
            assert_eq!(numbers.get(2).map(|found| (*found).max(-1)), Some(ends));
        }
        Some(Answer::OtherLimit { recorded }) => assert_eq!(numbers, [-1, i64::from(recorded)]),
    }
}

/// A name that is accepted has all its keys in one slot of a cluster.
fn redis_names(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match LockName::new(text) {
        Ok(name) => {
            assert_eq!(name.as_str(), text);
            for part in ["fence", "queue", "waiters"] {
                let key = name.beside(part);
                assert_eq!(hashed(&key), hashed(text), "{key}");
                assert_ne!(key, text);
            }
        }
        Err(error) => assert!(error.to_string().len() <= 12 * 1024),
    }
}

/// The part of a key that decides on its slot. Source: the specification of Redis Cluster, "Hash tags".
fn hashed(key: &str) -> &str {
    let behind = key.find('{').and_then(|open| key.get(open + 1..));
    let tag = behind.and_then(|behind| behind.get(..behind.find('}')?));
    tag.filter(|tag| !tag.is_empty()).unwrap_or(key)
}

#[cfg(test)]
#[path = "../../tests/fuzz/src/replay.rs"]
mod replay;

#[cfg(test)]
mod tests {
    #[test]
    fn the_kept_inputs_of_redis_keep_the_rules() {
        super::replay::replay(super::TARGETS);
    }
}
