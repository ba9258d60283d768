//! Waits for a change of a node, or for a child, by one-shot watches.

use super::handle::Session;
use crate::error::Refusal;
use crate::time::deadline::Deadline;
use crate::time::fractions;
use crate::wire::{Watch, WatchEvent, WireError};
use crate::znode::path::ZnodePath;

/// Waits until the children of `directory` may satisfy `is_there`, by one watch on its list. While the
/// directory does not exist, the watch is on the nearest parent that exists.
///
/// It also returns after other changes of the list, and after a reconnect: read again then.
pub(crate) async fn until_child(
    session: &Session,
    connection: u64,
    directory: &ZnodePath,
    is_there: impl Fn(&[String]) -> bool,
) -> Result<(), WireError> {
    let mut watched = directory.clone();
    let mut missing: Option<String> = None;
    loop {
        let room = session.watch_budget().reserve_spare(watched.as_str());
        if room.is_none() {
            until_changed(session, connection, None).await;
            return Ok(());
        }
        let mut reply = session.read(|wire| wire.watch_children(watched.as_str()));
        let has_come = |names: &[String]| match &missing {
            Some(missing) => names.contains(missing),
            None => is_there(names),
        };
        let watch = match session.await_reply(&mut reply, Deadline::never()).await {
            Ok((names, ..)) if has_come(&names) => return Ok(()),
            Ok((.., watch)) => Some(watch),
            Err(WireError::Refused(Refusal::NoNode)) => match watched.parent() {
                Some(parent) => {
                    missing = Some(watched.name().to_owned());
                    watched = parent;
                    continue;
                }
                None => None,
            },
            // A parent that may not be listed.
            Err(WireError::Refused(Refusal::NoAuth)) if missing.is_some() => None,
            Err(error) => return Err(error),
        };
        until_changed(session, connection, watch).await;
        return Ok(());
    }
}

/// Waits for the event of the watch. Without a watch, until it is time to read again.
pub(crate) async fn until_changed(
    session: &Session,
    connection: u64,
    watch: Option<Watch>,
) -> Option<WatchEvent> {
    let event = async {
        match watch {
            Some(watch) => Some(watch.await),
            None => {
                tokio::time::sleep(fractions::predecessor_poll_max(session.timeout())).await;
                None
            }
        }
    };
    tokio::select! {
        biased;
        event = event => event,
        // The client sets its watches again after a reconnect, but does not report a refusal.
        () = session.interrupted(Some(connection)) => None,
    }
}
