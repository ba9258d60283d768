//! The single requests of a register.

use super::decide::{Basis, Content};
use super::writer::WriterNode;
use crate::error::{Error, Operation, Refusal};
use crate::session::Session;
use crate::time::deadline::Deadline;
use crate::wire::{CreateMode, Stat, WireError, existing};

/// Why a step did not succeed.
pub(super) enum StepFailure {
    /// For this reason.
    Error(Error),
    /// A request failed.
    Wire(Operation, WireError),
}

/// A node as it is now; `None` if it does not exist. The read is sent behind a sync with the quorum, over the
/// same connection.
pub(super) async fn read_node(
    session: &Session,
    path: &str,
    deadline: Deadline,
) -> Result<Option<(Vec<u8>, Stat)>, StepFailure> {
    let failed = |error| StepFailure::Wire(Operation::Read, error);
    loop {
        let connection = session.connection();
        let mut sync = session.quorum_sync();
        let mut read = session.read(|wire| wire.data(path));
        session.await_reply(&mut sync, deadline).await.map_err(failed)?;
        let node = existing(session.await_reply(&mut read, deadline).await).map_err(failed)?;
        if session.connection() == connection {
            if let Some((_, stat)) = &node {
                session.settings().zxids.saw(stat.mzxid);
            }
            return Ok(node);
        }
    }
}

/// Creates the writer node below the node, and reads the node behind that: as long as the writer node exists,
/// the node is the one that was read, and not another one that was created in its place with the same
/// version. If the node does not exist, there is no writer node, either.
pub(super) async fn create_writer(
    session: &Session,
    path: &str,
    writer: &mut WriterNode,
    deadline: Deadline,
) -> Result<Basis, StepFailure> {
    writer.set_sent();
    let mut create = session.create(writer.path(), b"0", CreateMode::Ephemeral);
    let mut read = session.read(|wire| wire.data(path));
    match session.await_reply(&mut create, deadline).await {
        Ok(_) => writer.set_created(),
        Err(WireError::Refused(refusal)) => {
            writer.set_refused();
            if refusal != Refusal::NoNode {
                return Err(StepFailure::Wire(Operation::Create, WireError::Refused(refusal)));
            }
        }
        Err(error) => return Err(StepFailure::Wire(Operation::Create, error)),
    }
    let node = existing(session.await_reply(&mut read, deadline).await);
    let node = node.map_err(|error| StepFailure::Wire(Operation::Read, error))?;
    Ok(node.map(|(data, stat)| Content::new(data, &stat)))
}
