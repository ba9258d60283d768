//! Conversions between the types of the client crate and ours.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::{FutureExt, StreamExt, stream};
use zookeeper_client as client;

use crate::config::acl::{Acl, Permissions};
use crate::error::{LossReason, Refusal};
use crate::wire::{
    ChangedPaths, CreateMode, Created, Link, MultiError, Stat, Watch, WatchEvent, WireError, WriteOp,
    WriteResult,
};
use crate::znode::zxid::Zxid;

pub(super) fn client_mode(mode: CreateMode) -> client::CreateMode {
    match mode {
        CreateMode::Persistent => client::CreateMode::Persistent,
        CreateMode::PersistentSequential => client::CreateMode::PersistentSequential,
        CreateMode::Ephemeral => client::CreateMode::Ephemeral,
        CreateMode::EphemeralSequential => client::CreateMode::EphemeralSequential,
        CreateMode::Container => client::CreateMode::Container,
    }
}

const PERMISSIONS: [(Permissions, client::Permission); 5] = [
    (Permissions::READ, client::Permission::READ),
    (Permissions::WRITE, client::Permission::WRITE),
    (Permissions::CREATE, client::Permission::CREATE),
    (Permissions::DELETE, client::Permission::DELETE),
    (Permissions::ADMIN, client::Permission::ADMIN),
];

/// The entries of an access list.
pub(super) fn client_acls(acl: &Acl) -> Arc<[client::Acl]> {
    acl.entries.iter().map(|(permissions, scheme, id)| client_acl(*permissions, scheme, id)).collect()
}

pub(super) fn our_acl(entries: &[client::Acl]) -> Acl {
    let entry = |entry: &client::Acl| {
        let granted = PERMISSIONS.into_iter().filter(|(_, theirs)| entry.permission().has(*theirs));
        let permissions = granted.fold(Permissions(0), |sum, (ours, _)| sum.and(ours));
        (permissions, entry.scheme().to_owned(), entry.id().to_owned())
    };
    Acl { entries: entries.iter().map(entry).collect() }
}

fn client_acl(permissions: Permissions, scheme: &str, id: &str) -> client::Acl {
    let permission = PERMISSIONS
        .into_iter()
        .filter(|(ours, _)| permissions.0 & ours.0 != 0)
        .fold(client::Permission::NONE, |sum, (_, theirs)| sum | theirs);
    client::Acl::new(permission, client::AuthId::new(scheme, id))
}

pub(super) fn our_stat(stat: &client::Stat) -> Stat {
    Stat {
        czxid: Zxid::new(stat.czxid),
        mzxid: Zxid::new(stat.mzxid),
        pzxid: Zxid::new(stat.pzxid),
        ctime: stat.ctime,
        mtime: stat.mtime,
        version: stat.version,
        child_version: stat.cversion,
        ephemeral_owner: stat.ephemeral_owner,
        data_length: stat.data_length,
        children: stat.num_children,
    }
}

pub(super) fn link(state: client::SessionState) -> Link {
    match state {
        client::SessionState::SyncConnected => Link::Up,
        // Read-only sessions are never requested, and allow no writes.
        client::SessionState::Disconnected | client::SessionState::ConnectedReadOnly => Link::Down,
        client::SessionState::AuthFailed => Link::Ended(LossReason::AuthFailed),
        client::SessionState::Expired | client::SessionState::Closed => {
            Link::Ended(LossReason::SessionExpired)
        }
    }
}

pub(super) fn our_watch(watcher: client::OneshotWatcher) -> Watch {
    // A runtime that shuts down drops the client's task. The watcher panics then.
    let changed = AssertUnwindSafe(watcher.changed()).catch_unwind();
    Box::pin(changed.map(|event| event.map_or(WatchEvent::SessionEnded, watch_event)))
}

pub(super) fn changed_paths(watcher: client::PersistentWatcher) -> ChangedPaths {
    let paths = stream::unfold(watcher, |mut watcher| async move {
        // As for `our_watch`. It also panics after the event of the end of a session, which ends this stream.
        let event = AssertUnwindSafe(watcher.changed()).catch_unwind().await.ok()?;
        // The client does not set these watches again after a reconnect, and servers do not send what
        // was missed (ZOOKEEPER-4698).
        match event.event_type {
            client::EventType::Session => None,
            // The child has an event of its own, if the watch reaches it.
            client::EventType::NodeChildrenChanged => Some((None, watcher)),
            _ => Some((Some(event.path), watcher)),
        }
    });
    paths.filter_map(async |path| path).boxed()
}

pub(super) fn watch_event(event: client::WatchedEvent) -> WatchEvent {
    match event.event_type {
        client::EventType::NodeDeleted => WatchEvent::Deleted,
        client::EventType::Session => WatchEvent::SessionEnded,
        _ => WatchEvent::Changed,
    }
}

/// The results of a transaction of these operations. An answer that does not fit them is false, so the
/// transaction has none.
pub(super) fn write_results(
    operations: &[WriteOp],
    results: Vec<client::MultiWriteResult>,
) -> Result<Vec<WriteResult>, WireError> {
    if results.len() != operations.len() {
        return Err(WireError::Broken(format!("{} results of {} writes", results.len(), operations.len())));
    }
    operations.iter().zip(results).map(|(operation, result)| write_result(operation, result)).collect()
}

fn write_result(operation: &WriteOp, result: client::MultiWriteResult) -> Result<WriteResult, WireError> {
    match (operation, result) {
        (WriteOp::Create { path: asked, mode, .. }, client::MultiWriteResult::Create { path, stat })
            if is_created_as(asked, *mode, &path) =>
        {
            // Before 3.8.2 the server sends no stat here, and the bytes in its place may read as any stat
            // (ZOOKEEPER-4026).
            let stat = (!stat.is_invalid() && stat.czxid > 0).then(|| our_stat(&stat));
            Ok(WriteResult::Created(Created { path, stat }))
        }
        (WriteOp::SetData { .. }, client::MultiWriteResult::SetData { stat }) => {
            Ok(WriteResult::Written(our_stat(&stat)))
        }
        (WriteOp::Check { .. }, client::MultiWriteResult::Check)
        | (WriteOp::Delete { .. }, client::MultiWriteResult::Delete) => Ok(WriteResult::Done),
        (_, other) => Err(WireError::Broken(format!("a false answer to a transaction: {other:?}"))),
    }
}

/// Whether a create of the path `asked` may have created `path`: the server appends a number to the path of a
/// sequential node, and nothing to that of another one.
pub(super) fn is_created_as(asked: &str, mode: CreateMode, path: &str) -> bool {
    let Some(appended) = path.strip_prefix(asked) else { return false };
    match mode {
        CreateMode::PersistentSequential | CreateMode::EphemeralSequential => {
            // Ten digits; a sign in place of the first once the counter has passed its range.
            let digits = appended.strip_prefix('-').unwrap_or(appended);
            appended.len() >= 10 && digits.bytes().all(|byte| byte.is_ascii_digit())
        }
        CreateMode::Persistent | CreateMode::Ephemeral | CreateMode::Container => appended.is_empty(),
    }
}

pub(super) fn multi_error(error: client::MultiWriteError) -> MultiError {
    match error {
        client::MultiWriteError::RequestFailed { source } => MultiError::Request(wire_error(source)),
        client::MultiWriteError::OperationFailed { index, source } => match wire_error(source) {
            // These are answers of the connected server, not of the quorum, and concern the request, not the
            // operation.
            refused @ WireError::Refused(Refusal::SessionMoved | Refusal::Throttled | Refusal::ReadOnly) => {
                MultiError::Request(refused)
            }
            WireError::Refused(refusal) => MultiError::Operation { index, refusal },
            other => MultiError::Request(other),
        },
    }
}

/// An allow-list: without a definite answer of the server the outcome is unknown.
pub(super) fn wire_error(error: client::Error) -> WireError {
    use client::Error;
    let refusal = match error {
        Error::NoNode => Refusal::NoNode,
        Error::NodeExists => Refusal::NodeExists,
        Error::BadVersion => Refusal::BadVersion,
        Error::NoAuth => Refusal::NoAuth,
        Error::InvalidAcl => Refusal::InvalidAcl,
        Error::NotEmpty => Refusal::NotEmpty,
        Error::NoChildrenForEphemerals => Refusal::EphemeralParent,
        Error::QuotaExceeded => Refusal::QuotaExceeded,
        Error::Throttled => Refusal::Throttled,
        Error::NotReadOnly => Refusal::ReadOnly,
        Error::Unimplemented => Refusal::Unimplemented,
        Error::SessionMoved => Refusal::SessionMoved,
        Error::MarshallingError | Error::BadArguments(_) => Refusal::BadRequest,
        Error::NoWatcher => Refusal::Code(-121),
        Error::ReconfigDisabled => Refusal::Code(-123),
        Error::UnexpectedErrorCode(code) if is_definite(code) => Refusal::Code(code),
        Error::SessionExpired => return WireError::SessionEnded(LossReason::SessionExpired),
        Error::AuthFailed => return WireError::SessionEnded(LossReason::AuthFailed),
        Error::ClientClosed => return WireError::SessionEnded(LossReason::SessionExpired),
        // The client reports in this way that its own task has ended: no request of this session will ever be
        // answered.
        Error::UnexpectedError(text) if text.starts_with("BUG") || text.starts_with("expect error state") => {
            return WireError::SessionEnded(LossReason::SessionExpired);
        }
        other => return WireError::Broken(other.to_string()),
    };
    WireError::Refused(refusal)
}

/// Whether a server that answers with this code has not applied the request.
///
/// Codes below -100 are about the request. The others are about the system: a server that does not know what
/// has become of a write answers with one of them. So does -122, a request that was not completed in time.
fn is_definite(code: i32) -> bool {
    const REQUEST_TIMEOUT: i32 = -122;
    (-199..=-101).contains(&code) && code != REQUEST_TIMEOUT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_does_not_fit_the_transaction_is_none() {
        let stat = client::Stat {
            czxid: 7,
            mzxid: 7,
            pzxid: 7,
            ctime: 0,
            mtime: 0,
            version: 0,
            cversion: 0,
            aversion: 0,
            ephemeral_owner: 0,
            data_length: 0,
            num_children: 0,
        };
        let created = |path: &str| vec![client::MultiWriteResult::Create { path: path.to_owned(), stat }];
        let create = |mode| vec![WriteOp::Create { path: "/d/n-".to_owned(), data: Vec::new(), mode }];
        let (numbered, plain) = (create(CreateMode::EphemeralSequential), create(CreateMode::Ephemeral));
        for path in ["/d/n-0000000007", "/d/n--000000001", "/d/n-10000000000"] {
            assert!(write_results(&numbered, created(path)).is_ok(), "{path}");
        }
        for path in ["/e/n-0000000007", "/d/n-", "/d/n-000000007", "/d/n-00000x0007", "/d/n-0000000007/c", ""]
        {
            assert!(write_results(&numbered, created(path)).is_err(), "{path}");
        }
        for appended in ["----------", "--00000001", "000000000-"] {
            assert!(write_results(&numbered, created(&format!("/d/n-{appended}"))).is_err(), "{appended}");
        }
        assert!(write_results(&plain, created("/d/n-")).is_ok());
        assert!(write_results(&plain, created("/d/n-0000000007")).is_err());
        let delete = [WriteOp::Delete { path: "/d".to_owned(), version: None }];
        assert!(write_results(&delete, vec![client::MultiWriteResult::Delete]).is_ok());
        for results in [Vec::new(), vec![client::MultiWriteResult::Check], created("/d")] {
            assert!(write_results(&delete, results).is_err());
        }
    }

    #[test]
    fn only_a_code_about_the_request_says_that_nothing_was_applied() {
        for code in [-101, -120, -126, -199] {
            let refused = WireError::Refused(Refusal::Code(code));
            assert_eq!(wire_error(client::Error::UnexpectedErrorCode(code)), refused);
        }
        for code in [-1, -3, -4, -7, -13, -100, -122, -200, 0, 7, i32::MIN] {
            let WireError::Broken(cause) = wire_error(client::Error::UnexpectedErrorCode(code)) else {
                panic!("{code} is taken for a definite answer");
            };
            assert!(cause.contains(&code.to_string()), "{cause}");
        }
    }
}
