//! The requests of a presence. Each answer is an event of the engine.

use super::decide::{Event, Found};
use crate::error::Refusal;
use crate::session::{NodeWatch, ParentLifetime, Session, Witness, make_directory};
use crate::time::deadline::Deadline;
use crate::wire::{CreateMode, MultiError, Stat, WireError, WriteOp, WriteResult};
use crate::znode::path::ZnodePath;
use crate::znode::zxid::Zxid;

pub(super) async fn verify(
    session: &Session,
    path: &ZnodePath,
    witness: Witness,
) -> Result<Event, WireError> {
    session.verify_by(path.as_str(), witness).await.map(|()| Event::Verified)
}

pub(super) async fn make_parent(session: &Session, path: &ZnodePath) -> Result<Event, WireError> {
    if let Some(parent) = path.parent() {
        make_directory(session, &parent, ParentLifetime::WhileUsed, Deadline::never()).await?;
    }
    Ok(Event::ParentMade)
}

pub(super) async fn create(session: &Session, path: &ZnodePath, data: &[u8]) -> Result<Event, WireError> {
    let mut reply = session.create(path.as_str(), data, CreateMode::Ephemeral);
    let created = session.await_reply(&mut reply, Deadline::never()).await?;
    Ok(Event::Created(czxid(created.stat.as_ref())))
}

/// Deletes the node of an earlier session and creates ours, in one transaction.
pub(super) async fn replace(
    session: &Session,
    path: &ZnodePath,
    version: i32,
    data: &[u8],
) -> Result<Event, WireError> {
    let text = path.as_str().to_owned();
    let delete = WriteOp::Delete { path: text.clone(), version: Some(version) };
    let create = WriteOp::Create { path: text, data: data.to_vec(), mode: CreateMode::Ephemeral };
    let results = match session.multi(&[delete, create], Deadline::never()).await {
        Ok(results) => results,
        Err(MultiError::Operation { refusal, .. }) => return Err(WireError::Refused(refusal)),
        Err(MultiError::Request(error)) => return Err(error),
    };
    let stat = results.iter().find_map(|result| match result {
        WriteResult::Created(created) => created.stat,
        WriteResult::Done | WriteResult::Written(_) => None,
    });
    if let Some(stat) = &stat {
        session.verify_owner(path.as_str(), stat)?;
    }
    Ok(Event::Created(czxid(stat.as_ref())))
}

pub(super) async fn write(
    session: &Session,
    path: &ZnodePath,
    version: i32,
    data: &[u8],
) -> Result<Event, WireError> {
    let mut reply = session.set_data(path.as_str(), data, Some(version));
    let stat = session.await_reply(&mut reply, Deadline::never()).await?;
    Ok(Event::Wrote(found(&stat)))
}

/// Reads the node, with a watch if there is room for it.
pub(super) async fn read(
    session: &Session,
    path: &ZnodePath,
    watch: &mut Option<NodeWatch>,
) -> Result<Event, WireError> {
    let path = path.as_str();
    let mut reply = session.observe_data(path, session.watch_budget().reserve(path));
    match session.await_reply(&mut reply, Deadline::never()).await {
        Ok((data, stat, set)) => {
            // The earlier watch ends after the new one is set: the client has one for both.
            *watch = set;
            Ok(Event::Read(found(&stat), data))
        }
        Err(WireError::Refused(Refusal::NoNode)) => Ok(Event::ReadNothing),
        Err(error) => Err(error),
    }
}

/// The session that owns the node at the path, no older than the call. `None` if there is no node.
pub(super) async fn owner(session: &Session, path: &ZnodePath) -> Result<Option<i64>, WireError> {
    let mut sync = session.quorum_sync();
    let mut reply = session.read(|wire| wire.exists(path.as_str()));
    session.await_reply(&mut sync, Deadline::never()).await?;
    let stat = session.await_reply(&mut reply, Deadline::never()).await?;
    Ok(stat.map(|stat| stat.ephemeral_owner))
}

fn found(stat: &Stat) -> Found {
    Found { owner: stat.ephemeral_owner, czxid: stat.czxid, version: stat.version }
}

/// Some servers do not send it.
fn czxid(stat: Option<&Stat>) -> Option<Zxid> {
    stat.map(|stat| stat.czxid).filter(|czxid| *czxid > Zxid::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_without_a_zxid_names_no_transaction() {
        let stat = |zxid| {
            let czxid = Zxid::new(zxid);
            let (mzxid, pzxid, ctime, mtime) = (czxid, czxid, 0, 0);
            let (version, child_version, ephemeral_owner, data_length, children) = (0, 0, 7, 0, 0);
            Stat {
                czxid,
                mzxid,
                pzxid,
                ctime,
                mtime,
                version,
                child_version,
                ephemeral_owner,
                data_length,
                children,
            }
        };
        assert_eq!(czxid(Some(&stat(5))), Some(Zxid::new(5)));
        assert_eq!((czxid(Some(&stat(0))), czxid(None)), (None, None));
    }
}
