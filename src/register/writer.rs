//! The writer node of a register in one session.

use std::fmt::{self, Debug, Formatter};

use crate::session::{Session, janitor};
use crate::wire::WriteOp;
use crate::znode::path::ZnodePath;

/// The beginning of the name of a writer node below the node. A UUID follows.
pub(super) const PREFIX: &str = "writer-";

/// Behind the name of the node in the name of a writer node beside it. A UUID follows.
const BESIDE: &str = "-creation-";

/// The version of a node that was just created.
pub(super) const CREATED: i32 = 0;

/// A writer node is replaced before its version overflows.
const VERSION_MAX: i32 = i32::MAX - 1;

/// The writer node. Dropping it deletes the node in the background, so that no attempt that is in flight can
/// be applied later.
///
/// One request creates it, and no other: a second one that is applied late would take a deleted node back to
/// its first version, and with it the attempts from that version.
pub(super) struct WriterNode {
    session: Session,
    path: String,
    /// Whether it is beside the node, for attempts to create the node.
    is_beside: bool,
    version: i32,
    /// Whether the node exists, as far as is known.
    is_created: bool,
    /// Whether the node may exist.
    may_exist: bool,
}

impl WriterNode {
    /// One below the node at `path`.
    pub(super) fn below(session: &Session, path: &ZnodePath) -> Self {
        let name = format!("{PREFIX}{}", session.settings().environment.unique());
        Self::new(session, path.listed_child(&name), false)
    }

    /// One beside the node at `path`.
    pub(super) fn beside(session: &Session, path: &ZnodePath) -> Self {
        let path = format!("{path}{BESIDE}{}", session.settings().environment.unique());
        Self::new(session, path, true)
    }

    fn new(session: &Session, path: String, is_beside: bool) -> Self {
        let session = session.clone();
        Self { session, path, is_beside, version: CREATED, is_created: false, may_exist: false }
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn is_of(&self, session: &Session) -> bool {
        self.session.is_same_as(session)
    }

    /// Takes the node to its next version. `number` names the attempt.
    pub(super) fn operation(&self, number: u64) -> WriteOp {
        let (path, data) = (self.path.clone(), number.to_string().into_bytes());
        WriteOp::SetData { path, data, version: Some(self.version) }
    }

    /// Records that the request to create the node is sent.
    pub(super) fn set_sent(&mut self) {
        self.may_exist = true;
    }

    /// Records that the node was created.
    pub(super) fn set_created(&mut self) {
        self.is_created = true;
    }

    /// Records that the node was not created.
    pub(super) fn set_refused(&mut self) {
        self.may_exist = false;
    }

    /// Whether attempts to write the node may use it.
    pub(super) fn is_for_writes(&self) -> bool {
        self.is_created && !self.is_beside
    }

    /// Whether attempts to create the node may use it.
    pub(super) fn is_for_creates(&self) -> bool {
        self.is_created && self.is_beside
    }

    /// Records that one attempt was applied. Returns whether the node can be used again: one beside the node
    /// is not, because the node exists.
    pub(super) fn advance(&mut self) -> bool {
        self.version = self.version.saturating_add(1);
        !self.is_beside && self.version < VERSION_MAX
    }
}

/// The number of the attempt in the data of a writer node.
pub(super) fn attempt_number(data: &[u8]) -> Option<u64> {
    std::str::from_utf8(data).ok()?.parse().ok()
}

impl Drop for WriterNode {
    fn drop(&mut self) {
        if self.may_exist && self.session.loss().is_none() {
            janitor::delete(&self.session, &self.path);
        }
    }
}

impl Debug for WriterNode {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("WriterNode")
            .field("path", &self.path)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}
