//! The creation of the node.
//!
//! Attempts to create the node write a writer node *beside* it, because one below it would be deleted with
//! the node, and the outcome with it. That node has its first version until an attempt is applied, or until
//! the attempts are fenced off: the fence takes it to the next version without an attempt.

use super::batch::Batch;
use super::doubts::Doubts;
use super::requests::{StepFailure, read_node};
use super::worker::Worker;
use super::writer::{CREATED, WriterNode};
use crate::error::{Operation, Refusal};
use crate::session::Session;
use crate::time::deadline::Deadline;
use crate::wire::{CreateMode, WireError};
use crate::znode::zxid::Zxid;

/// The data of a writer node whose attempts are fenced off: no number of an attempt.
const FENCED: &[u8] = b"none";

impl Worker {
    /// Creates the writer node beside the node, and the missing parents.
    pub(super) async fn begin_creating(
        &mut self,
        session: &Session,
        deadline: Deadline,
    ) -> Result<(), StepFailure> {
        let writer = WriterNode::beside(session, self.full());
        let writer = self.memory.writer.insert(writer);
        writer.set_sent();
        let mut create = session.create(writer.path(), b"0", CreateMode::Ephemeral);
        match session.await_reply(&mut create, deadline).await {
            Ok(_) => {
                writer.set_created();
                self.memory.has_made_parent = false;
            }
            Err(WireError::Refused(refusal)) => {
                writer.set_refused();
                self.memory.writer = None;
                if refusal != Refusal::NoNode {
                    return Err(StepFailure::Wire(Operation::Create, WireError::Refused(refusal)));
                }
                self.make_parent(session, deadline).await?;
            }
            Err(error) => return Err(StepFailure::Wire(Operation::Create, error)),
        }
        Ok(())
    }

    /// Ensures that no attempt to create the node will be applied, and finds out whether one was. Returns its
    /// zxid in that case.
    pub(super) async fn fence_creation(
        &mut self,
        session: &Session,
        batch: &mut Batch,
        doubts: &mut Doubts,
        deadline: Deadline,
    ) -> Result<Option<Zxid>, StepFailure> {
        let Some(writer) = doubts.writer().filter(|_| doubts.has_creates()) else { return Ok(None) };
        let mut fence = session.set_data(writer, FENCED, Some(CREATED));
        match session.await_reply(&mut fence, deadline).await {
            Ok(_) => {}
            Err(WireError::Refused(Refusal::BadVersion)) => {
                // An attempt was applied, or a fence whose answer was lost.
                if let Some(zxid) = self.find_applied(session, batch, doubts, deadline).await? {
                    self.memory.writer = None;
                    return Ok(Some(zxid));
                }
                let writer = read_node(session, writer, deadline).await?;
                if writer.is_none_or(|(data, _)| data != FENCED) {
                    return Err(StepFailure::Error(self.unknown("its writer node was written by others")));
                }
            }
            Err(WireError::Refused(Refusal::NoNode)) => {
                let cause = "its writer node is gone, and the node may have been created and deleted";
                return Err(StepFailure::Error(self.unknown(cause)));
            }
            Err(error) => return Err(StepFailure::Wire(Operation::Commit, error)),
        }
        *doubts = Doubts::default();
        self.memory.writer = None;
        Ok(None)
    }
}
