//! The consequence of the answer to an attempt: pure.

use std::sync::Arc;

use crate::error::Refusal;
use crate::wire::{Stat, WriteOp};

/// The state of a node, as a change is decided from it.
#[derive(Clone, Copy, Debug)]
pub struct Current<'a> {
    data: Option<&'a [u8]>,
    zxid: Option<i64>,
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

    /// The zxid of the last write of the node, 0 if the node does not exist. `None` if the last write is one
    /// that is combined with this change.
    #[must_use]
    pub fn zxid(&self) -> Option<i64> {
        self.zxid
    }

    pub(super) fn of(basis: &'a Basis) -> Self {
        match basis {
            None => Self { data: None, zxid: Some(0) },
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
    pub(super) czxid: i64,
    pub(super) mzxid: i64,
    pub(super) version: i32,
    /// No child of the node was ever deleted.
    pub(super) has_all_children: bool,
}

impl Content {
    pub(super) fn new(data: impl Into<Arc<[u8]>>, stat: &Stat) -> Self {
        // Fewer are left than were made if one was deleted.
        let has_all_children = stat.children_made() == stat.children;
        let (czxid, mzxid, version) = (stat.czxid, stat.mzxid, stat.version);
        Self { data: data.into(), czxid, mzxid, version, has_all_children }
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
    /// The parent of the node does not exist.
    ParentMissing,
    /// Another reason.
    Refused(Refusal),
}

impl AttemptVerdict {
    /// The meaning of a refusal of `operation`.
    pub(super) fn of(part: AttemptPart, operation: &WriteOp, refusal: Refusal) -> Self {
        let is_create = matches!(operation, WriteOp::Create { .. });
        match (part, refusal) {
            (AttemptPart::Writer, Refusal::NodeExists | Refusal::BadVersion) => Self::WriterMoved,
            (AttemptPart::Writer, Refusal::NoNode) if is_create => Self::Stale,
            (AttemptPart::Writer, Refusal::NoNode) => Self::WriterMissing,
            (AttemptPart::Node, Refusal::NoNode) if is_create => Self::ParentMissing,
            (AttemptPart::Node, Refusal::NodeExists | Refusal::BadVersion | Refusal::NoNode) => Self::Stale,
            (_, refusal) => Self::Refused(refusal),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::CreateMode;

    #[test]
    fn each_refusal_of_an_attempt_means_one_thing() {
        let create = WriteOp::Create { path: String::new(), data: Vec::new(), mode: CreateMode::Persistent };
        let set = WriteOp::SetData { path: String::new(), data: Vec::new(), version: Some(1) };
        let refused = AttemptVerdict::Refused(Refusal::NoAuth);
        for (part, operation, refusal, means) in [
            (AttemptPart::Writer, &create, Refusal::NodeExists, AttemptVerdict::WriterMoved),
            (AttemptPart::Writer, &set, Refusal::BadVersion, AttemptVerdict::WriterMoved),
            (AttemptPart::Writer, &create, Refusal::NoNode, AttemptVerdict::Stale),
            (AttemptPart::Writer, &set, Refusal::NoNode, AttemptVerdict::WriterMissing),
            (AttemptPart::Node, &create, Refusal::NodeExists, AttemptVerdict::Stale),
            (AttemptPart::Node, &create, Refusal::NoNode, AttemptVerdict::ParentMissing),
            (AttemptPart::Node, &set, Refusal::BadVersion, AttemptVerdict::Stale),
            (AttemptPart::Node, &set, Refusal::NoNode, AttemptVerdict::Stale),
            (AttemptPart::Node, &set, Refusal::NoAuth, refused),
            (AttemptPart::Writer, &create, Refusal::NoAuth, refused),
        ] {
            assert_eq!(AttemptVerdict::of(part, operation, refusal), means, "{part:?} {refusal:?}");
        }
    }

    #[test]
    fn a_node_that_was_deleted_and_created_again_is_not_the_same_write() {
        let content = |czxid, mzxid| {
            Some(Content { data: [7].into(), czxid, mzxid, version: 0, has_all_children: true })
        };
        assert!(is_same_write(&content(5, 5), &content(5, 5)) && is_same_write(&None, &None));
        assert!(!is_same_write(&content(5, 5), &content(9, 9)) && !is_same_write(&None, &content(5, 5)));
    }
}
