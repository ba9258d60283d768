//! The writer node of a register in one session.

use std::fmt::{self, Debug, Formatter};

use crate::session::Session;
use crate::wire::{CreateMode, WriteOp};
use crate::znode::path::ZnodePath;

/// The beginning of the name of a writer node. A UUID follows.
pub(super) const PREFIX: &str = "writer-";

/// A writer node is replaced before its version overflows.
const VERSION_MAX: i32 = i32::MAX - 1;

/// The writer node. Dropping it deletes the node in the background, so that no attempt that is in flight can
/// be applied later.
pub(super) struct WriterNode {
    session: Session,
    path: String,
    /// The version of the node; `None` before it is created.
    version: Option<i32>,
    /// Whether an attempt was sent that creates or writes it.
    is_used: bool,
}

impl WriterNode {
    pub(super) fn new(session: &Session, directory: &ZnodePath) -> Self {
        let name = format!("{PREFIX}{}", session.settings().environment.unique());
        let path = directory.listed_child(&name);
        Self { session: session.clone(), path, version: None, is_used: false }
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
        match self.version {
            None => WriteOp::Create { path, data, mode: CreateMode::Ephemeral },
            version => WriteOp::SetData { path, data, version },
        }
    }

    /// Records that an attempt is sent.
    pub(super) fn set_used(&mut self) {
        self.is_used = true;
    }

    /// Records that the node was created by itself.
    pub(super) fn set_created(&mut self) {
        self.version = Some(0);
    }

    /// Whether the node exists, as far as is known.
    pub(super) fn is_created(&self) -> bool {
        self.version.is_some()
    }

    /// Records that one attempt was applied. Returns whether the node can be used again.
    pub(super) fn advance(&mut self) -> bool {
        let version = self.version.map_or(0, |version| version.saturating_add(1));
        self.version = Some(version);
        version < VERSION_MAX
    }
}

/// The number of the attempt in the data of a writer node.
pub(super) fn attempt_number(data: &[u8]) -> Option<u64> {
    std::str::from_utf8(data).ok()?.parse().ok()
}

impl Drop for WriterNode {
    fn drop(&mut self) {
        if self.is_used && self.session.loss().is_none() {
            self.session.janitor().delete(&self.session, &self.path);
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
