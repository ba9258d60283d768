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

    /// Whether it is for attempts to create the node.
    pub(super) fn is_for_creates(&self) -> bool {
        self.is_beside
    }

    /// Records that one attempt was applied. Returns whether the version leaves room for another one.
    pub(super) fn advance(&mut self) -> bool {
        self.version = self.version.saturating_add(1);
        self.version < VERSION_MAX
    }
}

/// The number of the attempt in the data of a writer node.
pub(super) fn attempt_number(data: &[u8]) -> Option<u64> {
    std::str::from_utf8(data).ok()?.parse().ok()
}

impl Drop for WriterNode {
    fn drop(&mut self) {
        if self.may_exist {
            // In a session that is over nothing is sent.
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

#[cfg(test)]
mod tests {
    use lockkeeper_testserver::TestServer;

    use super::*;
    use crate::ConnectionManager;
    use crate::register::{Change, Register};

    #[tokio::test]
    async fn a_writer_node_is_left_before_its_version_overflows() {
        let server = TestServer::start().await.unwrap();
        let manager = ConnectionManager::connect(&server.connect_string()).await.unwrap();
        let register = Register::new(&manager, "/register").unwrap();
        let write = || register.update(|_| (Change::Write(b"1".to_vec()), ()));
        // Nothing else runs in this thread: the register has its memory back when a change has ended.
        let has_writer = || register.inner.state.lock().memory.as_ref().unwrap().writer.is_some();
        // The first one creates the node, and the second one the writer node.
        write().await.unwrap();
        write().await.unwrap();
        let path = {
            let mut state = register.inner.state.lock();
            let writer = state.memory.as_mut().unwrap().writer.as_mut().unwrap();
            writer.version = VERSION_MAX - 2;
            writer.path.clone()
        };
        assert!(server.set_version(&path, VERSION_MAX - 2));
        write().await.unwrap();
        assert!(has_writer(), "its version is the last one that is used");
        write().await.unwrap();
        assert!(!has_writer(), "the next change makes another one");
        write().await.unwrap();
        assert!(has_writer());
    }
}
