use std::fmt::{self, Debug, Display, Formatter};
use std::sync::Arc;

use thiserror::Error;
use uuid::Uuid;

/// The longest label, in bytes.
pub const LABEL_BYTES_MAX: usize = 64;

/// The part of a contender's node name before its sequence number.
///
/// Other libraries read these bytes: a Java service that takes the same lock finds its position by them.
/// Source: Apache Curator's `LockInternals`, `InterProcessSemaphoreV2`, `InterProcessReadWriteLock` and
/// `LeaderLatch`.
///
/// A recipe whose contenders must not be taken for those of another lock has a label of its own, by
/// [`new`](Self::new), and the [`Kind`] that belongs to it, by [`kind`](Self::kind).
///
/// # Examples
///
/// ```
/// use lockkeeper_core::{Label, Rule};
///
/// /// The contenders of a turnstile.
/// const TURN: Label = match Label::new("turn-") {
///     Ok(label) => label,
///     Err(_) => panic!("not a label"), // at compile time
/// };
/// /// Each waits for every contender ahead.
/// const RULE: Rule = Rule::blocked_by(&[TURN.kind()]);
/// # let _ = RULE;
/// ```
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
    /// A candidate of an election.
    pub const LATCH: Self = Self("latch-");
    /// A process that wants starts of a rate limiter.
    pub const LIMIT: Self = Self("limit-");

    /// A label of your own.
    ///
    /// A node belongs to a label if its name *ends* with the label and the sequence number. So no label may
    /// be the end of another one in the same directory. For a label that the library knows, `new` checks
    /// this. For the labels of one rule, [`LockQueue::new`](crate::LockQueue::new) checks it.
    ///
    /// # Errors
    ///
    /// [`LabelError`] if the text is empty or too long, has other characters than ASCII letters, digits, `-`,
    /// `_` and `.`, ends in a digit, or is ambiguous with a label that this library knows (`lock-`, `lease-`,
    /// `latch-`, `limit-`, `__READ__`, `__WRIT__`, kazoo's `__lock__` and `__rlock__`).
    pub const fn new(text: &'static str) -> Result<Self, LabelError> {
        let bytes = text.as_bytes();
        if bytes.len() > LABEL_BYTES_MAX {
            return Err(LabelError::TooLong { label: text });
        }
        let mut rest = bytes;
        while let [byte, after @ ..] = rest {
            if !matches!(byte, b'-' | b'_' | b'.') && !byte.is_ascii_alphanumeric() {
                return Err(LabelError::Character { label: text });
            }
            rest = after;
        }
        match without_hyphens(bytes) {
            [] => return Err(LabelError::Empty),
            [.., b'0'..=b'9'] => return Err(LabelError::Digit { label: text }),
            _ => {}
        }
        let mut known: &[(&str, Kind)] = &KNOWN_LABELS;
        while let [(other, _), others @ ..] = known {
            if is_ambiguous(text, other) {
                return Err(LabelError::Ambiguous { label: text, other });
            }
            known = others;
        }
        Ok(Self(text))
    }

    /// The label as text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.0
    }

    /// The kind of the contenders with this label.
    #[must_use]
    pub const fn kind(self) -> Kind {
        Kind(self)
    }

    /// Checks that a node name determines which of two different labels it has.
    pub(crate) fn check_beside(self, other: Self) -> Result<(), LabelError> {
        match self != other && is_ambiguous(self.0, other.0) {
            true => Err(LabelError::Ambiguous { label: self.0, other: other.0 }),
            false => Ok(()),
        }
    }
}

/// Whether a node name can end with both labels and a number.
///
/// Hyphens at the end do not count: `a-1999999999` is `a-` with a number, or `a` with a negative one.
const fn is_ambiguous(one: &str, other: &str) -> bool {
    let (mut one, mut other) = (without_hyphens(one.as_bytes()), without_hyphens(other.as_bytes()));
    while let ([one_before @ .., one_last], [other_before @ .., other_last]) = (one, other) {
        if *one_last != *other_last {
            return false;
        }
        (one, other) = (one_before, other_before);
    }
    true
}

const fn without_hyphens(mut bytes: &[u8]) -> &[u8] {
    while let [before @ .., b'-'] = bytes {
        bytes = before;
    }
    bytes
}

/// Why a text cannot be a [`Label`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LabelError {
    /// The text has nothing but hyphens.
    #[error("a label of no letters; name what the contenders wait for, such as turn-")]
    Empty,
    /// The text is longer than [`LABEL_BYTES_MAX`].
    #[error("the label {label} has {} bytes; take at most {LABEL_BYTES_MAX}", .label.len())]
    TooLong {
        /// The text.
        label: &'static str,
    },
    /// The text has a character that node names should not have.
    #[error(
        "the label {label:?} has a character that is not allowed; take ASCII letters, digits, -, _ and ."
    )]
    Character {
        /// The text.
        label: &'static str,
    },
    /// The text ends in a digit, hyphens at its end aside: a reader could not see where the number begins.
    #[error(
        "the label {label} ends in a digit; the sequence number follows, so end it in a letter or a hyphen"
    )]
    Digit {
        /// The text.
        label: &'static str,
    },
    /// A node name could have both labels: one is the end of the other, hyphens at the end aside.
    #[error("a node named by the label {label} could be one of {other}; end the label in another way")]
    Ambiguous {
        /// The text.
        label: &'static str,
        /// The other label.
        other: &'static str,
    },
}

/// The purpose for which a child of a lock's directory contends, as its name gives it.
///
/// Each [`Label`] has a kind. The labels of other libraries have the kind of the label with the same meaning.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Kind(Label);

impl Kind {
    /// A mutex: Curator's and Go's `lock-`, kazoo's `__lock__`.
    pub const LOCK: Self = Label::LOCK.kind();
    /// A lease of a semaphore: `lease-`.
    pub const LEASE: Self = Label::LEASE.kind();
    /// A reader: Curator's `__READ__`, kazoo's `__rlock__`.
    pub const READ: Self = Label::READ.kind();
    /// A writer: `__WRIT__`.
    pub const WRITE: Self = Label::WRITE.kind();
    /// A candidate of an election, of Curator's `LeaderLatch`: `latch-`.
    pub const LATCH: Self = Label::LATCH.kind();
    /// A process that wants starts of a rate limiter: `limit-`.
    pub const LIMIT: Self = Label::LIMIT.kind();
    /// A sequential node with none of the labels that were searched for.
    pub const OTHER: Self = Self(Label(""));

    pub(crate) const fn label(self) -> Label {
        self.0
    }

    /// The value of `recipe` in metrics and spans, unless a queue has its own name.
    pub(crate) fn metric_name(self) -> &'static str {
        match self {
            Self::LOCK => "mutex",
            Self::LEASE => "semaphore",
            Self::READ => "read",
            Self::WRITE => "write",
            Self::LATCH => "election",
            Self::LIMIT => "rate_limiter",
            Self::OTHER => "other",
            Self(label) => label.0.trim_matches(['-', '_', '.']),
        }
    }
}

impl Debug for Kind {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Kind").field(&self.0.0).finish()
    }
}

/// The labels that are known in every directory. Longer ones first, where one ends with another.
const KNOWN_LABELS: [(&str, Kind); 8] = [
    ("__rlock__", Kind::READ),
    ("__lock__", Kind::LOCK),
    ("__READ__", Kind::READ),
    ("__WRIT__", Kind::WRITE),
    ("latch-", Kind::LATCH),
    ("lease-", Kind::LEASE),
    ("limit-", Kind::LIMIT),
    ("lock-", Kind::LOCK),
];

/// The kind of a node whose name is `stem` and a sequence number, if the label is known or one of `labels`.
fn kind_of(stem: &str, mut labels: impl Iterator<Item = Label>) -> Option<Kind> {
    let known = KNOWN_LABELS.iter().find(|(label, _)| stem.ends_with(label)).map(|(_, kind)| *kind);
    known.or_else(|| labels.find(|label| stem.ends_with(label.0)).map(Label::kind))
}

/// The prefix by which a search finds the node of a create whose reply was lost.
///
/// There is one for each create, never one for a lock: a node found by it can only be the node of that
/// create.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CreateId(Uuid);

impl CreateId {
    pub(crate) fn new(unique: Uuid) -> Self {
        Self(unique)
    }

    /// The create id in the name of a node of this library.
    pub(crate) fn of(path: &str) -> Option<Self> {
        Uuid::try_parse(NodeName::create_id(path)?).ok().map(Self)
    }

    /// Another create id, determined by this one and `number` alone.
    pub(crate) fn derived(self, number: u128) -> Self {
        Self(Uuid::from_u128(self.0.as_u128().wrapping_add(number)))
    }

    /// The name to create, without the sequence number that the server appends.
    pub(crate) fn name(self, label: Label) -> String {
        format!("{self}{}", label.0)
    }

    /// The child that this create made, if the list has it.
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

/// The parsed name of a sequential node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NodeName {
    name: Arc<str>,
    kind: Kind,
    sequence: i32,
}

impl NodeName {
    /// Reads a child's name, where the contenders have labels that this library knows. Returns `None` if the
    /// name has no sequence number at its end.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::parse_with(name, &[])
    }

    /// As [`parse`](Self::parse), where contenders may also have one of these labels.
    #[must_use]
    pub fn parse_with(name: &str, labels: &[Label]) -> Option<Self> {
        Self::parse_among(name, labels.iter().copied())
    }

    /// As [`parse_with`](Self::parse_with). `labels` may include labels that are known in every directory.
    pub(crate) fn parse_among(name: &str, labels: impl Iterator<Item = Label> + Clone) -> Option<Self> {
        // The server appends `%010d`: ten digits, or a sign and at least nine once the counter has
        // overflowed.
        let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let tail = name.get(name.len() - digits.min(10)..)?;
        let stem = name.get(..name.len() - tail.len())?;
        let positive =
            (tail.len() == 10).then(|| tail.parse().ok()).flatten().map(|sequence: i32| (stem, sequence));
        let negative = || {
            let stem = stem.strip_suffix('-').filter(|_| tail.len() >= 9)?;
            Some((stem, format!("-{tail}").parse().ok()?))
        };
        let of_a_known_kind =
            |(stem, sequence): (&str, i32)| Some((kind_of(stem, labels.clone())?, sequence));
        let (kind, sequence) = positive
            .and_then(of_a_known_kind)
            .or_else(|| negative().and_then(of_a_known_kind))
            .or_else(|| positive.map(|(_, sequence)| (Kind::OTHER, sequence)))?;
        Some(Self { name: name.into(), kind, sequence })
    }

    /// The child's name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.name
    }

    /// The kind of lock that the node contends for.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The sequence number that the server appended: the parent's counter, which is 32 bits wide.
    #[must_use]
    pub fn sequence(&self) -> i32 {
        self.sequence
    }

    /// The id of the create that made a node of this name, as text: unique for ever. `None` for the name of a
    /// client that writes no such id; Curator's clients and this library's do.
    #[must_use]
    pub fn create_id(name: &str) -> Option<&str> {
        let id = name.rsplit('/').next()?.strip_prefix("_c_")?.get(..36)?;
        Uuid::try_parse(id).is_ok().then_some(id)
    }

    /// Whether the sequence number gives the order of creation.
    ///
    /// The counter ends at 2147483647. Servers before 3.6 continue below zero; later ones give that last
    /// number to every further node, mixed with negative ones (ZOOKEEPER-3249). From there on only the
    /// creation zxids give the order.
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
mod tests;
