use lockkeeper::schedule::Slot;
use lockkeeper::znodes::Once;
use lockkeeper::{BootInstant, Error, FencingToken, Hold, Lost, MultiLockGuard, ZnodePath};

use crate::exit::Failure;
use crate::output::warn;

/// What the program runs under, and what is recorded when it has succeeded.
#[derive(Debug)]
pub(super) enum Grant {
    /// One or more locks.
    Locks(MultiLockGuard),
    /// A lock, and the path of the node that says that the program has succeeded once.
    Once(MultiLockGuard, String),
    /// A slot of a schedule.
    Slot(Box<Slot>),
}

/// A lock, as the environment of the program names it.
#[derive(Debug)]
pub(super) struct LockInfo {
    pub(super) path: String,
    pub(super) node: String,
    pub(super) token: FencingToken,
}

impl Grant {
    pub(super) fn valid_until(&self) -> BootInstant {
        match self {
            Self::Locks(guard) | Self::Once(guard, _) => guard.valid_until(),
            Self::Slot(slot) => slot.valid_until(),
        }
    }

    pub(super) fn check(&self) -> Result<(), Lost> {
        match self {
            Self::Locks(guard) | Self::Once(guard, _) => guard.check(),
            Self::Slot(slot) => slot.check(),
        }
    }

    pub(super) async fn lost(&self) -> Lost {
        match self {
            Self::Locks(guard) | Self::Once(guard, _) => guard.lost().await,
            Self::Slot(slot) => slot.lost().await,
        }
    }

    pub(super) async fn revoke_requested(&self) -> Result<(), Error> {
        match self {
            Self::Locks(guard) | Self::Once(guard, _) => guard.revoke_requested().await,
            Self::Slot(slot) => slot.revoke_requested().await,
        }
    }

    /// The nodes that the locks rest on.
    pub(super) fn nodes(&self) -> Vec<ZnodePath> {
        match self {
            Self::Locks(guard) | Self::Once(guard, _) => {
                guard.members().flat_map(|(_, hold)| hold.paths()).collect()
            }
            Self::Slot(slot) => slot.hold().paths().collect(),
        }
    }

    /// Each lock, in the order of the paths.
    pub(super) fn locks(&self) -> Vec<LockInfo> {
        let info = |hold: &Hold| {
            let node = hold.path().to_string();
            let path = node.rsplit_once('/').map_or("/", |(path, _)| path).to_owned();
            LockInfo { path, node, token: hold.fencing_token() }
        };
        match self {
            Self::Locks(guard) | Self::Once(guard, _) => {
                let members = guard.members();
                members.map(|(path, hold)| LockInfo { path: path.to_string(), ..info(hold) }).collect()
            }
            Self::Slot(slot) => vec![info(slot.hold())],
        }
    }

    /// Ends the grant. If the program has succeeded, this is recorded first, in a transaction that is
    /// committed only while the lock is held.
    pub(super) async fn end(self, has_succeeded: bool) -> Result<(), Failure> {
        match self {
            Self::Once(guard, marker) if has_succeeded => {
                let by =
                    guard.members().next().map_or(&b""[..], |(_, hold)| hold.manager().node_data()).to_vec();
                if guard.txn().once(&marker).with_data(by).commit().await.map_err(Error::from)?
                    == Once::Before
                {
                    warn(format_args!("{marker} exists already"));
                }
                released(guard.release().await.map_err(Error::from))
            }
            Self::Locks(guard) | Self::Once(guard, _) => released(guard.release().await.map_err(Error::from)),
            Self::Slot(slot) if has_succeeded => Ok(slot.done(Vec::new()).await?),
            Self::Slot(slot) => released(slot.release().await.map_err(Error::from)),
        }
    }
}

/// The program was protected to its end unless the lock was lost: closing the session deletes the node.
fn released(result: Result<(), Error>) -> Result<(), Failure> {
    match result {
        Err(error) if error.is_lost() => Err(error.into()),
        Err(error) => {
            warn(error);
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}
