//! The data of an item: what the queue knows of it, and the bytes of the application.

/// The first line of the data.
const MAGIC: &str = "lockkeeper item 1\n";

/// So many failures are kept.
const FAILURES_MAX: usize = 10;

/// The most bytes of a reason that are kept.
const REASON_BYTES_MAX: usize = 256;

/// An item as its node has it.
///
/// Data without the first line is the value alone: an item that another client has put.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct StoredItem {
    /// The name of the worker that claims the item, or has claimed it before its node was deleted.
    pub(super) claim: Option<String>,
    /// How often the item was taken.
    pub(super) attempts: u32,
    /// The item is not taken before this time of the servers, in milliseconds since 1970.
    pub(super) due: Option<i64>,
    /// Why the last attempts failed, oldest first. Each is one line.
    pub(super) failures: Vec<String>,
    /// The value, encoded.
    pub(super) value: Vec<u8>,
}

impl StoredItem {
    pub(super) fn new(value: Vec<u8>) -> Self {
        Self { value, ..Self::default() }
    }

    /// The item once this worker has claimed it.
    pub(super) fn claimed_by(&self, worker: &str) -> Self {
        Self { claim: Some(worker.to_owned()), attempts: self.attempts.saturating_add(1), ..self.clone() }
    }

    /// The item after an attempt that failed at this time, for this reason.
    pub(super) fn failed(mut self, reason: &str, time: i64) -> Self {
        let reason: String = reason.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let mut ends = (0..=REASON_BYTES_MAX.min(reason.len())).rev();
        let end = ends.find(|end| reason.is_char_boundary(*end)).unwrap_or_default();
        let by = self.claim.as_deref().unwrap_or("nobody");
        self.failures.push(format!("{time} {by} {}", reason.get(..end).unwrap_or_default()));
        let surplus = self.failures.len().saturating_sub(FAILURES_MAX);
        self.failures.drain(..surplus);
        self
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut head = MAGIC.to_owned();
        if let Some(claim) = &self.claim {
            head.push_str(&format!("claim {claim}\n"));
        }
        if self.attempts > 0 {
            head.push_str(&format!("attempts {}\n", self.attempts));
        }
        if let Some(due) = self.due {
            head.push_str(&format!("due {due}\n"));
        }
        for failure in &self.failures {
            head.push_str(&format!("failure {failure}\n"));
        }
        head.push('\n');
        [head.as_bytes(), &self.value].concat()
    }

    pub(super) fn decode(data: &[u8]) -> Self {
        Self::decode_own(data).unwrap_or_else(|| Self::new(data.to_vec()))
    }

    /// `None` if the data has not the form that [`encode`](Self::encode) writes. A line that this version
    /// does not know is skipped.
    fn decode_own(data: &[u8]) -> Option<Self> {
        let mut rest = data.strip_prefix(MAGIC.as_bytes())?;
        let mut stored = Self::default();
        loop {
            let end = rest.iter().position(|byte| *byte == b'\n')?;
            let (line, after) = rest.split_at_checked(end)?;
            rest = after.get(1..)?;
            if line.is_empty() {
                break;
            }
            match std::str::from_utf8(line).ok()?.split_once(' ')? {
                ("claim", worker) => stored.claim = Some(worker.to_owned()),
                ("attempts", count) => stored.attempts = count.parse().ok()?,
                ("due", millis) => stored.due = Some(millis.parse().ok()?),
                ("failure", failure) => stored.failures.push(failure.to_owned()),
                _ => {}
            }
        }
        stored.value = rest.to_vec();
        Some(stored)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_failure_is_one_line_and_the_last_ten_are_kept() {
        let mut stored = StoredItem::new(b"value".to_vec()).claimed_by("w");
        for number in 0..12 {
            stored = stored.failed(&format!("{number}\n{}", "é".repeat(300)), 7);
        }
        assert_eq!(stored.failures.len(), 10);
        assert!(stored.failures.iter().all(|failure| failure.len() < 300), "{:?}", stored.failures);
        assert!(stored.failures[0].starts_with("7 w 2 é"), "{:?}", stored.failures);
        assert_eq!(StoredItem::decode(&stored.encode()), stored);
    }

    #[test]
    fn an_item_of_another_client_is_its_value() {
        for data in [&b""[..], b"order 7", b"lockkeeper item 1", b"lockkeeper item 1\nattempts x\n\nvalue"] {
            assert_eq!(StoredItem::decode(data), StoredItem::new(data.to_vec()));
        }
    }

    proptest! {
        #[test]
        fn every_item_is_read_as_it_was_written(
            claim in proptest::option::of("[a-z0-9_-]{1,60}"),
            attempts in any::<u32>(),
            value in proptest::collection::vec(any::<u8>(), 0..60),
            has_magic in any::<bool>(),
            due in proptest::option::of(any::<i64>()),
            failures in proptest::collection::vec("[ -~]{1,30}", 0..3),
        ) {
            let value = if has_magic { [MAGIC.as_bytes(), &value].concat() } else { value };
            let stored = StoredItem { claim, attempts, due, failures, value };
            prop_assert_eq!(StoredItem::decode(&stored.encode()), stored);
        }
    }
}
