//! The consequence of the answer to an attempt: pure.

use std::sync::Arc;

use crate::error::Refusal;
use crate::wire::Stat;
use crate::znode::zxid::Zxid;

/// The state of a node, as a change is decided from it.
#[derive(Clone, Copy, Debug)]
pub struct Current<'a> {
    data: Option<&'a [u8]>,
    zxid: Option<Zxid>,
}

/// The effect of a change on the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing is written.
    Keep,
    /// The node gets this data.
    Write(Vec<u8>),
}

impl<'a> Current<'a> {
    /// The data of the node; `None` if the node does not exist.
    #[must_use]
    pub fn data(&self) -> Option<&'a [u8]> {
        self.data
    }

    /// The zxid of the last write of the node, [`Zxid::ZERO`] if the node does not exist. `None` if the last
    /// write is one that is combined with this change.
    #[must_use]
    pub fn zxid(&self) -> Option<Zxid> {
        self.zxid
    }

    pub(super) fn of(basis: &'a Basis) -> Self {
        match basis {
            None => Self { data: None, zxid: Some(Zxid::ZERO) },
            Some(content) => Self { data: Some(&content.data), zxid: Some(content.mzxid) },
        }
    }

    pub(super) fn pending(data: &'a [u8]) -> Self {
        Self { data: Some(data), zxid: None }
    }
}

/// The node, as it was read or written; `None` if it does not exist.
pub(super) type Basis = Option<Content>;

/// The data of a node, and which write of it that is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) data: Arc<[u8]>,
    pub(super) czxid: Zxid,
    pub(super) mzxid: Zxid,
    pub(super) version: i32,
}

impl Content {
    pub(super) fn new(data: impl Into<Arc<[u8]>>, stat: &Stat) -> Self {
        let (czxid, mzxid, version) = (stat.czxid, stat.mzxid, stat.version);
        Self { data: data.into(), czxid, mzxid, version }
    }
}

/// Whether both are one write of one node.
pub(super) fn is_same_write(one: &Basis, other: &Basis) -> bool {
    let write = |basis: &Basis| basis.as_ref().map(|of| (of.czxid, of.mzxid, of.version));
    write(one) == write(other)
}

/// The node that an operation of an attempt is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttemptPart {
    /// The node of the register.
    Node,
    /// The writer node.
    Writer,
}

/// What the refusal of an attempt means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttemptVerdict {
    /// An earlier attempt was applied: the writer node has left the state from which all attempts take it.
    WriterMoved,
    /// The writer node was deleted.
    WriterMissing,
    /// The node is not the one that was read.
    Stale,
    /// Another reason.
    Refused(Refusal),
}

impl AttemptVerdict {
    /// The meaning of a refusal of the operation on this node.
    pub(super) fn of(part: AttemptPart, refusal: Refusal) -> Self {
        match (part, refusal) {
            (AttemptPart::Writer, Refusal::BadVersion) => Self::WriterMoved,
            (AttemptPart::Writer, Refusal::NoNode) => Self::WriterMissing,
            (AttemptPart::Node, Refusal::NodeExists | Refusal::BadVersion | Refusal::NoNode) => Self::Stale,
            (_, refusal) => Self::Refused(refusal),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_of_an_attempt_means_one_thing() {
        let refused = AttemptVerdict::Refused(Refusal::NoAuth);
        for (part, refusal, means) in [
            (AttemptPart::Writer, Refusal::BadVersion, AttemptVerdict::WriterMoved),
            (AttemptPart::Writer, Refusal::NoNode, AttemptVerdict::WriterMissing),
            (AttemptPart::Node, Refusal::NodeExists, AttemptVerdict::Stale),
            (AttemptPart::Node, Refusal::BadVersion, AttemptVerdict::Stale),
            (AttemptPart::Node, Refusal::NoNode, AttemptVerdict::Stale),
            (AttemptPart::Node, Refusal::NoAuth, refused),
            (AttemptPart::Writer, Refusal::NoAuth, refused),
        ] {
            assert_eq!(AttemptVerdict::of(part, refusal), means, "{part:?} {refusal:?}");
        }
    }

    #[test]
    fn a_node_that_was_deleted_and_created_again_is_not_the_same_write() {
        let content = |czxid, mzxid| {
            let (czxid, mzxid) = (Zxid::new(czxid), Zxid::new(mzxid));
            Some(Content { data: [7].into(), czxid, mzxid, version: 0 })
        };
        assert!(is_same_write(&content(5, 5), &content(5, 5)) && is_same_write(&None, &None));
        assert!(!is_same_write(&content(5, 5), &content(9, 9)) && !is_same_write(&None, &content(5, 5)));
    }
}
