//! The state of a register, and what it remembers from one change to the next.

use parking_lot::Mutex;

use super::batch::ChangeQueue;
use super::decide::Basis;
use super::write_contention::WriteContention;
use super::writer::WriterNode;
use crate::manager::ConnectionManager;
use crate::znode::path::ZnodePath;

/// Shared by the clones of a register and its task.
pub(super) struct RegisterInner {
    // Drop order: the state deletes the writer node, and the manager is last.
    pub(super) state: Mutex<RegisterState>,
    pub(super) path: ZnodePath,
    pub(super) full: ZnodePath,
    pub(super) combines: bool,
    pub(super) metric_name: &'static str,
    pub(super) manager: ConnectionManager,
}

pub(super) struct RegisterState {
    pub(super) queue: ChangeQueue,
    /// `None` while a task applies changes: the task has it.
    pub(super) memory: Option<Memory>,
}

/// What a register remembers between two changes.
#[derive(Default)]
pub(super) struct Memory {
    pub(super) writer: Option<WriterNode>,
    /// The node after the last change; `None` if it is to be read.
    pub(super) basis: Option<Basis>,
    pub(super) contention: WriteContention,
    pub(super) attempts: u64,
    /// The parents were created, and the node was not yet.
    pub(super) has_made_parent: bool,
}
