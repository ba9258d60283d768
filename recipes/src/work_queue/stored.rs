//! The data of an item: what the queue knows of it, and the bytes of the application.

/// The first line of the data.
const MAGIC: &str = "lockkeeper item 1\n";

/// An item as its node has it.
///
/// Data without the first line is the value alone: an item that another client has put.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Stored {
    /// The name of the worker that claims the item, or has claimed it before its node was deleted.
    pub(super) claim: Option<String>,
    /// How often the item was taken.
    pub(super) attempts: u32,
    /// The value, encoded.
    pub(super) value: Vec<u8>,
}

impl Stored {
    pub(super) fn new(value: Vec<u8>) -> Self {
        Self { value, ..Self::default() }
    }

    /// The item once this worker has claimed it.
    pub(super) fn claimed_by(&self, worker: &str) -> Self {
        let attempts = self.attempts.saturating_add(1);
        Self { claim: Some(worker.to_owned()), attempts, value: self.value.clone() }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut head = MAGIC.to_owned();
        if let Some(claim) = &self.claim {
            head.push_str(&format!("claim {claim}\n"));
        }
        if self.attempts > 0 {
            head.push_str(&format!("attempts {}\n", self.attempts));
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
    fn an_item_of_another_client_is_its_value() {
        for data in [&b""[..], b"order 7", b"lockkeeper item 1", b"lockkeeper item 1\nattempts x\n\nvalue"] {
            assert_eq!(Stored::decode(data), Stored::new(data.to_vec()));
        }
    }

    proptest! {
        #[test]
        fn every_item_is_read_as_it_was_written(
            claim in proptest::option::of("[a-z0-9_-]{1,60}"),
            attempts in any::<u32>(),
            value in proptest::collection::vec(any::<u8>(), 0..60),
            has_magic in any::<bool>(),
        ) {
            let value = if has_magic { [MAGIC.as_bytes(), &value].concat() } else { value };
            let stored = Stored { claim, attempts, value };
            prop_assert_eq!(Stored::decode(&stored.encode()), stored);
        }
    }
}
