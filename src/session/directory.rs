//! Directories and their parents, which the first node below them needs.

use super::handle::Session;
use super::hang_ups::Suspect;
use super::retry::Stop;
use crate::error::{Operation, Refusal};
use crate::time::deadline::Deadline;
use crate::wire::{CreateMode, WireError};
use crate::znode::path::ZnodePath;

/// How long a created directory exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParentLifetime {
    /// The server removes it when it has been empty for a while, if the server can.
    WhileUsed,
    /// It is never removed, and neither are the parents that are made for it.
    ForEver,
    /// It is never removed, and has these data at first. The parents that are made for it are as with
    /// `WhileUsed`.
    AloneForEver(&'static [u8]),
}

/// Creates a directory and its missing parents.
pub(crate) async fn make_directory(
    session: &Session,
    directory: &ZnodePath,
    lifetime: ParentLifetime,
    deadline: Deadline,
) -> Result<(), WireError> {
    // Searches upward only to the deepest existing node, so that no right on the levels above is needed.
    let mut missing = vec![directory.clone()];
    let mut above = directory.parent();
    while let Some(path) = above.take().filter(|path| !path.is_root()) {
        let mut reply = session.read(|wire| wire.exists(path.as_str()));
        match session.await_reply(&mut reply, deadline).await {
            // Since 3.8.4 and 3.9.2 this needs the right to read, which the server asks for only if the node
            // exists.
            Ok(Some(_)) | Err(WireError::Refused(Refusal::NoAuth)) => {}
            Ok(None) => {
                above = path.parent();
                missing.push(path);
            }
            Err(error) => return Err(error),
        }
    }
    while let Some(path) = missing.pop() {
        let (is_removed, data): (bool, &[u8]) = match lifetime {
            ParentLifetime::ForEver => (false, &[]),
            ParentLifetime::AloneForEver(data) if path == *directory => (false, data),
            ParentLifetime::WhileUsed | ParentLifetime::AloneForEver(_) => (true, &[]),
        };
        let as_container = is_removed && session.has_containers();
        let mode = if as_container { CreateMode::Container } else { CreateMode::Persistent };
        let create = || session.create(path.as_str(), data, mode);
        let mut reply = if as_container {
            session.send_suspect(Suspect::Container, deadline, create).await
        } else {
            create()
        };
        match session.await_reply(&mut reply, deadline).await {
            Ok(_) | Err(WireError::Refused(Refusal::NodeExists)) => {}
            Err(WireError::Refused(Refusal::Unimplemented | Refusal::BadRequest)) if as_container => {
                session.without_containers();
                missing.push(path);
            }
            // Some servers close the connection on an unknown request.
            Err(WireError::Broken(_)) if as_container && session.hangs_up_on(Suspect::Container) => {
                missing.push(path);
            }
            // A parent was removed in between: the create that follows notices that, and everything starts
            // over.
            Err(WireError::Refused(Refusal::NoNode)) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Creates the directory of a queue, as [`make_directory`] does. Tries again while that can help: a directory
/// that exists already does no harm.
pub(crate) async fn make_queue_directory(
    session: &Session,
    directory: &ZnodePath,
    lifetime: ParentLifetime,
    deadline: Deadline,
) -> Result<(), Stop> {
    loop {
        match make_directory(session, directory, lifetime, deadline).await {
            Ok(()) => return Ok(()),
            Err(error) => {
                session.retry_after(&error, Operation::Create, directory.as_str(), deadline).await?;
            }
        }
    }
}
