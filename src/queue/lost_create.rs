//! The search for the node of a create whose answer was lost, and the end of a row of such creates.

use tracing::warn;

use super::step_error::{StepError, time_left};
use crate::config::retry::RetryPauses;
use crate::error::{Error, Operation, Phase};
use crate::hold::NodeGuard;
use crate::local::PendingCreate;
use crate::session::{Session, lost_create};
use crate::time::deadline::Deadline;
use crate::wire::{Stat, WireError};
use crate::znode::path::ZnodePath;

/// A created node, with its stat if the server told it.
pub(crate) type FoundNode = (NodeGuard, Option<Stat>);

/// After this many creates in a row without an answer and without a node, the create is the likely cause.
///
/// More than a bad network loses by chance: of some thousand simulated histories with many broken connections
/// one had four in a row. The pauses grow, so the servers and the other calls bear as many.
const LOST_MAX: u32 = 8;

/// The creates of one call that had no answer, and whose nodes were not found.
///
/// Between two of them a search or a read has had an answer. So the servers answer, and only not to the
/// create: a server closes the connection on a request that is larger than its `jute.maxbuffer`, each time.
#[derive(Default)]
pub(crate) struct LostCreates {
    count: u32,
    /// Boxed, as it takes space in every task that waits.
    pauses: Option<Box<RetryPauses>>,
}

impl LostCreates {
    /// One more, for this reason. Pauses before the next one, or ends the call.
    pub(crate) async fn add(
        &mut self,
        session: &Session,
        path: &str,
        cause: &WireError,
        deadline: Deadline,
    ) -> Result<(), StepError> {
        self.count += 1;
        if self.count >= LOST_MAX {
            let (operation, attempts) = (Operation::Create, self.count);
            warn!(path, attempts, %cause, "a create has no answer again and again; it is not sent any more");
            let (path, cause) = (path.into(), cause.to_string());
            return Err(Error::Unanswerable { operation, path, attempts, cause }.into());
        }
        let pauses = self.pauses.get_or_insert_with(|| Box::new(session.settings().retry.start()));
        session.pause(pauses.next(), deadline).await;
        time_left(deadline, path, Phase::Answer)
    }
}

/// Searches for the node of a create without an answer. `None` is not final: the create may be executed
/// later. Fails if the directory may not be listed: the janitor searches on, as long as the session lives.
pub(crate) async fn resolve_lost_create(
    session: &Session,
    directory: &ZnodePath,
    create: &mut PendingCreate,
    deadline: Deadline,
) -> Result<Option<FoundNode>, StepError> {
    let found = tokio::select! {
        biased;
        found = lost_create::find(session, directory, create.create_id()) => found,
        () = deadline.passed() => {
            return Err(Error::timed_out(deadline, directory.as_str(), Phase::Answer).into());
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
            session.verify_owner(&path, &stat).map_err(|_| StepError::Restart)?;
            Ok(Some((guard_node(session, create, path), Some(stat))))
        }
        // The drop of the guard leaves the node to the janitor.
        _ => {
            time_left(deadline, directory.as_str(), Phase::Answer)?;
            Err(StepError::Restart)
        }
    }
}

/// The create made the node at `path`, which has a guard from now on.
pub(super) fn guard_node(session: &Session, create: &mut PendingCreate, path: String) -> NodeGuard {
    create.settle();
    session.node_bytes().found(&path);
    NodeGuard::of(session, path)
}
