//! The search for the node of a create whose answer was lost.

use tracing::debug;

use super::handle::Session;
use crate::error::Refusal;
use crate::time::deadline::Deadline;
use crate::wire::{WireError, existing};
use crate::znode::name::CreateId;
use crate::znode::path::ZnodePath;

/// Searches for the node of a create until a search has a definite result. Returns `None` if the node does
/// not exist, and the refusal if the directory may not be listed.
pub(crate) async fn find(
    session: &Session,
    directory: &ZnodePath,
    create_id: CreateId,
) -> Result<Option<String>, Refusal> {
    let mut pauses = session.settings().retry.start();
    loop {
        match find_once(session, directory, create_id, Deadline::never()).await {
            Ok(found) => return Ok(found),
            Err(WireError::SessionEnded(_)) => return Ok(None),
            Err(WireError::Refused(refusal)) if !refusal.is_transient() => return Err(refusal),
            Err(error) => debug!(%directory, %error, "searching again"),
        }
        session.pause(pauses.next(), Deadline::never()).await;
        if session.loss().is_some() {
            return Ok(None);
        }
    }
}

/// Searches once for the node of a create.
pub(crate) async fn find_once(
    session: &Session,
    directory: &ZnodePath,
    create_id: CreateId,
    deadline: Deadline,
) -> Result<Option<String>, WireError> {
    // The list is sent right after the sync, so a server that has caught up answers it.
    let mut sync = session.read(|wire| wire.sync(directory.as_str()));
    let mut list = session.read(|wire| wire.children(directory.as_str()));
    session.await_reply(&mut sync, deadline).await?;
    let children = existing(session.await_reply(&mut list, deadline).await)?.unwrap_or_default();
    Ok(create_id.find(&children).map(|child| directory.listed_child(child)))
}
