//! The record of a slot: the name and the bytes of its node.

use std::time::{Duration, SystemTime};

use lockkeeper_core::{FencingToken, Stat};

/// The number of digits of a name: enough until the year 2286. A later time has one more.
const DIGITS: usize = 13;

/// A slot that was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotRecord {
    slot: SystemTime,
    done_at: SystemTime,
    done: DoneRecord,
}

/// What the data of a record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DoneRecord {
    pub(super) token: FencingToken,
    pub(super) by: String,
    pub(super) result: Vec<u8>,
}

impl SlotRecord {
    /// `None` if the record says that the schedule began, or is not of this format.
    pub(super) fn read(slot: u64, data: &[u8], stat: &Stat) -> Option<Self> {
        let done_at = time(stat.ctime.max(0).unsigned_abs());
        Some(Self { slot: time(slot), done_at, done: decode(data)? })
    }

    /// When the slot began, by the servers' clock.
    #[must_use]
    pub fn slot(&self) -> SystemTime {
        self.slot
    }

    /// When the slot was done, by the servers' clock.
    #[must_use]
    pub fn done_at(&self) -> SystemTime {
        self.done_at
    }

    /// The fencing token of the [`Slot`](super::Slot) by which it was done.
    #[must_use]
    pub fn fencing_token(&self) -> FencingToken {
        self.done.token
    }

    /// The process that did it: its node data, on one line. Bytes that are not UTF-8 are replaced.
    #[must_use]
    pub fn by(&self) -> &str {
        &self.done.by
    }

    /// The result, as [`done`](super::Slot::done) was given it.
    #[must_use]
    pub fn result(&self) -> &[u8] {
        &self.done.result
    }
}

pub(super) fn time(millis: u64) -> SystemTime {
    let since = Duration::from_millis(millis);
    SystemTime::UNIX_EPOCH.checked_add(since).unwrap_or(SystemTime::UNIX_EPOCH)
}

/// The name of the record of this slot.
pub(super) fn name(slot: u64) -> String {
    format!("{slot:0DIGITS$}")
}

/// The slot whose record has this name. `None` if it is no name of a record.
pub(super) fn slot(name: &str) -> Option<u64> {
    let slot = name.parse().ok()?;
    (self::name(slot) == name).then_some(slot)
}

/// The data of a slot that was done. A token of generation 0 is its number alone. The node of a slot is not
/// handed over, so its token has no more parts.
pub(super) fn encode(token: FencingToken, by: &[u8], result: &[u8]) -> Vec<u8> {
    let generation = match token.generation() {
        0 => String::new(),
        generation => format!("{generation}:"),
    };
    let head = format!("done token={generation}{} ", token.as_u64());
    let by: Vec<u8> = by.iter().map(|byte| if byte.is_ascii_control() { b' ' } else { *byte }).collect();
    [head.as_bytes(), &by, b"\n", result].concat()
}

/// The data of the slot before the first one.
pub(super) fn encode_begin(by: &[u8]) -> Vec<u8> {
    [b"begun ", by].concat()
}

pub(super) fn decode(data: &[u8]) -> Option<DoneRecord> {
    let end = data.iter().position(|byte| *byte == b'\n')?;
    let (head, result) = data.split_at_checked(end)?;
    let head = String::from_utf8_lossy(head);
    let (token, by) = head.strip_prefix("done token=")?.split_once(' ')?;
    let (generation, number) = token.split_once(':').unwrap_or(("0", token));
    let token = FencingToken::from_parts(generation.parse().ok()?, number.parse().ok()?, 0);
    let result = result.get(1..).unwrap_or_default().to_vec();
    Some(DoneRecord { token, by: by.to_owned(), result })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_record_is_read_back_with_its_result_in_raw_bytes() {
        let done =
            |token| DoneRecord { token, by: "host=a pid=1".to_owned(), result: b"\x00\n\xff".to_vec() };
        for (token, head) in [
            (FencingToken::new(7), &b"done token=7 host=a"[..]),
            (FencingToken::from_parts(2, 7, 0), b"done token=2:7 host=a"),
        ] {
            let data = encode(token, b"host=a\npid=1", b"\x00\n\xff");
            assert!(data.starts_with(head), "{token}");
            assert_eq!(decode(&data), Some(done(token)));
        }
        for other in [&b""[..], b"begun host=a", b"done token=x a\n", b"done token=1\n", b"done token=1 a"] {
            assert_eq!(decode(other), None, "{other:?}");
        }
        assert_eq!(decode(&encode_begin(b"host=a pid=1")), None);
    }

    #[test]
    fn names_sort_by_time() {
        assert_eq!(name(1_764_000_000_000), "1764000000000");
        assert_eq!((name(0), name(u64::MAX)), ("0000000000000".to_owned(), u64::MAX.to_string()));
        for (text, expected) in [
            ("1764000000000", Some(1_764_000_000_000)),
            ("0000000000007", Some(7)),
            ("7", None),
            ("+000000000007", None),
            ("lock-0000000007", None),
            ("", None),
        ] {
            assert_eq!(slot(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_record_is_read_back(
            (generation, number, slot_number) in any::<(u32, u64, u64)>(),
            by in prop::collection::vec(any::<u8>(), 0..30),
            result in prop::collection::vec(any::<u8>(), 0..30),
        ) {
            let token = FencingToken::from_parts(generation, number, 0);
            let done = decode(&encode(token, &by, &result)).unwrap();
            prop_assert_eq!((done.token, done.result), (token, result));
            prop_assert_eq!(slot(&name(slot_number)), Some(slot_number));
        }

        #[test]
        fn no_data_panics(data in prop::collection::vec(any::<u8>(), 0..60), text in ".*") {
            decode(&data);
            slot(&text);
        }
    }
}
