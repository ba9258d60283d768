use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use uuid::Uuid;

/// What a contender's node is called before its sequence number.
///
/// These are the bytes other libraries read: a Java service that takes the same lock finds its place by them.
/// Source: Apache Curator's `LockInternals`, `InterProcessSemaphoreV2` and `InterProcessReadWriteLock`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Label(&'static str);

impl Label {
    /// A mutex.
    pub const LOCK: Self = Self("lock-");
    /// A lease of a semaphore.
    pub const LEASE: Self = Self("lease-");
    /// The read side of a read/write lock.
    pub const READ: Self = Self("__READ__");
    /// The write side of a read/write lock.
    pub const WRITE: Self = Self("__WRIT__");
    /// A start that a rate limiter has written down. Nobody waits for it.
    pub const START: Self = Self("start-");

    /// The label as text.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.0
    }

    pub(crate) fn kind(self) -> Kind {
        kind_of(self.0).unwrap_or(Kind::Other)
    }
}

/// What a child of a lock's directory contends for, read from its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// A mutex: Curator's and Go's `lock-`, kazoo's `__lock__`.
    Lock,
    /// A lease of a semaphore: `lease-`.
    Lease,
    /// A reader: Curator's `__READ__`, kazoo's `__rlock__`.
    Read,
    /// A writer: `__WRIT__`.
    Write,
    /// A sequential node of something else.
    Other,
}

impl Kind {
    /// What takes such nodes, as metrics and spans call it.
    pub(crate) fn metric_name(self) -> &'static str {
        match self {
            Self::Lock => "mutex",
            Self::Lease => "semaphore",
            Self::Read => "read",
            Self::Write => "write",
            Self::Other => "other",
        }
    }
}

/// The labels peers use, and what they mean. Longer ones first, where one ends with another.
const LABELS: [(&str, Kind); 6] = [
    ("__rlock__", Kind::Read),
    ("__lock__", Kind::Lock),
    ("__READ__", Kind::Read),
    ("__WRIT__", Kind::Write),
    ("lease-", Kind::Lease),
    ("lock-", Kind::Lock),
];

fn kind_of(stem: &str) -> Option<Kind> {
    LABELS.iter().find(|(label, _)| stem.ends_with(label)).map(|(_, kind)| *kind)
}

/// The prefix by which a create whose reply was lost is found again.
///
/// One is made for each attempt, never for a lock: a node found by it can only be the node of that attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CreateId(Uuid);

impl CreateId {
    pub(crate) fn new(unique: Uuid) -> Self {
        Self(unique)
    }

    /// The protection in the name of a node of ours.
    pub(crate) fn of(path: &str) -> Option<Self> {
        let name = path.rsplit('/').next()?;
        let uuid = name.strip_prefix("_c_")?.get(..36)?;
        Uuid::try_parse(uuid).ok().map(Self)
    }

    /// Another one, which only this one and the number decide.
    pub(crate) fn derived(self, number: u128) -> Self {
        Self(Uuid::from_u128(self.0.as_u128().wrapping_add(number)))
    }

    /// The name to create, without the number that the server appends.
    pub(crate) fn name(self, label: Label) -> String {
        format!("{self}{}", label.0)
    }

    /// The child that this attempt made, if it is among them.
    pub(crate) fn find(self, children: &[String]) -> Option<&String> {
        let prefix = self.to_string();
        children.iter().find(|child| child.starts_with(&prefix))
    }
}

impl Display for CreateId {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "_c_{}-", self.0.hyphenated())
    }
}

/// The name of a sequential node, taken apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NodeName {
    name: Arc<str>,
    kind: Kind,
    sequence: i32,
}

impl NodeName {
    /// Reads a child's name; `None` when no sequence number stands at its end.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        // The server appends `%010d`: ten digits, or a sign and at least nine once the counter went past its end.
        let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let tail = name.get(name.len() - digits.min(10)..)?;
        let stem = name.get(..name.len() - tail.len())?;
        let positive =
            (tail.len() == 10).then(|| tail.parse().ok()).flatten().map(|sequence: i32| (stem, sequence));
        let negative = stem
            .strip_suffix('-')
            .filter(|_| tail.len() >= 9)
            .and_then(|stem| Some((stem, format!("-{tail}").parse().ok()?)));
        let of_a_known_kind = |(stem, sequence): (&str, i32)| Some((kind_of(stem)?, sequence));
        let (kind, sequence) = positive
            .and_then(of_a_known_kind)
            .or_else(|| negative.and_then(of_a_known_kind))
            .or_else(|| positive.map(|(_, sequence)| (Kind::Other, sequence)))?;
        Some(Self { name: name.into(), kind, sequence })
    }

    /// The child's name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.name
    }

    /// What it contends for.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The number the server gave it: the parent's counter, which is 32 bits wide.
    #[must_use]
    pub fn sequence(&self) -> i32 {
        self.sequence
    }

    /// Whether the number says who came first.
    ///
    /// The counter ends at 2147483647. Servers before 3.6 go on below zero; later ones give that last number to
    /// every further node, mixed with negative ones (ZOOKEEPER-3249). From there on only the order of creation
    /// tells.
    #[must_use]
    pub fn has_ordered_sequence(&self) -> bool {
        (0..i32::MAX).contains(&self.sequence)
    }
}

impl Display for NodeName {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const UUID: &str = "_c_6f9619ff-8b86-4d11-b42d-00cf4fc964ff-";

    #[test]
    fn the_names_of_all_peers_are_read() {
        for (name, kind, sequence) in [
            ("_c_6f9619ff-8b86-4d11-b42d-00cf4fc964ff-lock-0000000007", Kind::Lock, 7),
            ("_c_6f9619ff8b864d11b42d00cf4fc964ff-lock-0000000007", Kind::Lock, 7),
            ("6f9619ff8b864d11b42d00cf4fc964ff__lock__0000000012", Kind::Lock, 12),
            ("6f9619ff8b864d11b42d00cf4fc964ff__rlock__0000000012", Kind::Read, 12),
            ("_c_6f9619ff-8b86-4d11-b42d-00cf4fc964ff-__WRIT__0000000003", Kind::Write, 3),
            ("_c_6f9619ff-8b86-4d11-b42d-00cf4fc964ff-__READ__-2147483648", Kind::Read, i32::MIN),
            ("_c_6f9619ff-8b86-4d11-b42d-00cf4fc964ff-lock--000000001", Kind::Lock, -1),
            ("lock--1999999999", Kind::Lock, -1_999_999_999),
            ("lock-2147483647", Kind::Lock, i32::MAX),
            ("x-144115188075855872-0000000004", Kind::Other, 4),
            ("latch-0000000004", Kind::Other, 4),
        ] {
            let parsed = NodeName::parse(name).unwrap();
            assert_eq!((parsed.kind(), parsed.sequence()), (kind, sequence), "{name}");
            assert_eq!(parsed.as_str(), name);
        }
    }

    #[test]
    fn names_without_a_number_are_nobody() {
        for name in ["", "config", "lock-", "lock-12", "lock-000000012", "é", "_c_1-lock-٣٣٣٣٣٣٣٣٣٣"]
        {
            assert_eq!(NodeName::parse(name), None, "{name}");
        }
    }

    #[test]
    fn a_lost_create_is_found_by_its_own_protection_only() {
        let (mine, other) = (CreateId::new(Uuid::new_v4()), CreateId::new(Uuid::new_v4()));
        let children = vec![
            format!("{}0000000000", other.name(Label::LOCK)),
            format!("{}0000000001", mine.name(Label::LOCK)),
        ];
        assert_eq!(mine.find(&children), children.get(1));
        assert_eq!(CreateId::new(Uuid::new_v4()).find(&children), None);
    }

    proptest! {
        #[test]
        fn what_the_server_writes_is_read_back(sequence: i32, label in prop::sample::select(vec![
            Label::LOCK, Label::LEASE, Label::READ, Label::WRITE,
        ])) {
            // Java's %010d counts the sign as one of the ten places.
            let number = if sequence < 0 { format!("-{:09}", sequence.unsigned_abs()) } else { format!("{sequence:010}") };
            let name = format!("{UUID}{}{number}", label.as_str());
            prop_assert_eq!(NodeName::parse(&name).unwrap().sequence(), sequence);
        }

        #[test]
        fn any_text_is_read_without_a_panic(name in "\\PC*") {
            let _ = NodeName::parse(&name);
        }
    }
}
