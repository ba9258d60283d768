//! The search for the node of a create whose answer was lost.

use super::create_guard::{CreateGuard, NodeGuard};
use super::step_error::{StepError, time_left, timeout_error};
use crate::error::{Error, Operation, Phase};
use crate::session::{Session, janitor};
use crate::time::deadline::Deadline;
use crate::wire::Stat;
use crate::znode::path::ZnodePath;

/// A created node, with its stat if the server told it.
pub(super) type FoundNode = (NodeGuard, Option<Stat>);

/// Searches for the node of a create without an answer. `None` is not final: the create may be executed
/// later. Fails if the directory may not be listed: the janitor searches on, as long as the session lives.
pub(super) async fn resolve_lost_create(
    session: &Session,
    directory: &ZnodePath,
    create: &mut CreateGuard,
    deadline: Deadline,
) -> Result<Option<FoundNode>, StepError> {
    let found = tokio::select! {
        biased;
        found = janitor::find(session, directory, create.create_id()) => found,
        () = deadline.passed() => {
            return Err(timeout_error(deadline, directory.as_str(), Phase::Answer).into());
        }
    };
    if session.loss().is_some() {
        return Err(StepError::Restart);
    }
    let found = found.map_err(|refusal| {
        let path = directory.as_str().into();
        Error::Refused { operation: Operation::List, path, refusal }
    })?;
    let Some(path) = found else { return Ok(None) };
    let mut reply = session.read(|wire| wire.exists(&path));
    match session.await_reply(&mut reply, deadline).await {
        Ok(Some(stat)) => {
            // A node of another session is not ours, whatever its name says.
            session.check_owner(&path, &stat).map_err(|_| StepError::Restart)?;
            Ok(Some((create.found(path), Some(stat))))
        }
        // The drop of the guard leaves the node to the janitor.
        _ => {
            time_left(deadline, directory.as_str(), Phase::Answer)?;
            Err(StepError::Restart)
        }
    }
}
