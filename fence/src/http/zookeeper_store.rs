use lockkeeper::error::DecodeFailure;
use lockkeeper::table::TableCodec;
use lockkeeper::znodes::IntoPath;
use lockkeeper::{ConnectionManager, Error, Table};
use lockkeeper_lock::FencingToken;

use super::store::FenceStore;
use crate::error::{FenceError, Stale, checked_name};

/// The newest tokens in nodes of ZooKeeper: one node for each resource, below one path.
///
/// The node has the 39 digits of the newest token, as the header has them. It is raised by compare and set,
/// and never lowered. Each check asks the quorum, also one that does not raise the mark: a server that lags
/// behind admits no late request. After a lost answer the check finds out what became of its own write, and
/// an equal token is admitted. So a mark that this request raised itself does not refuse it.
///
/// It refuses a late request before it is served, over all processes and restarts. It cannot refuse a request
/// that becomes late while it is served: the service makes a check of its own where it writes, with the token
/// in the extensions of the request. A service that writes to the same ensemble as its marks needs the
/// version of a node, or the token in its data, for that.
///
/// The marks are a [`Table`] of the ensemble: an ensemble that is restored has marks that are older, and no
/// one may delete them. A resource that was seen has a node until then.
///
/// # Ordering
///
/// Linearizable for each resource, over all stores of the path.
///
/// # Session loss
///
/// A check goes on in the next session. If its outcome cannot be found out, the request is refused with 503,
/// and the mark may be raised to its token: the same request, sent again, is admitted.
///
/// # Cancel safety
///
/// A check that is dropped may raise the mark.
#[derive(Clone, Debug)]
pub struct ZooKeeperStore {
    marks: Table<FencingToken>,
}

impl ZooKeeperStore {
    /// A store below `path`, under the manager's chroot. Sends nothing. The first check creates the path.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the path is malformed or the root.
    pub fn new(manager: &ConnectionManager, path: impl IntoPath) -> Result<Self, Error> {
        Ok(Self { marks: Table::with_codec(manager, path, Digits)? })
    }

    /// Fences off a holder by hand, as [`Marks::above`](crate::Marks::above): when the call returns, the
    /// resource refuses this token, those of all holders that its node is handed over to, and all older ones.
    ///
    /// # Errors
    ///
    /// [`FenceError::NotChecked`]: the mark may be raised. Call again.
    pub async fn mark_above(&self, resource: &str, token: FencingToken) -> Result<(), FenceError> {
        checked_name(resource)?;
        self.raised(resource, token.mark_above()).await.map(drop)
    }

    /// Raises the mark of a resource to this token, unless it is there or above. The mark behind that.
    async fn raised(&self, resource: &str, token: FencingToken) -> Result<FencingToken, FenceError> {
        let raise = move |newest: Option<&FencingToken>| match newest {
            Some(newest) if *newest >= token => None,
            _ => Some(token),
        };
        let mark = self.marks.update(resource, raise).await.map_err(|error| FenceError::NotChecked {
            resource: resource.to_owned(),
            is_transient: false,
            source: Box::new(error),
        })?;
        Ok(mark.map_or(token, |mark| mark.value))
    }
}

impl FenceStore for ZooKeeperStore {
    type Admission = ();

    async fn admit(&self, resource: &str, token: FencingToken) -> Result<(), FenceError> {
        checked_name(resource)?;
        let newest = self.raised(resource, token).await?;
        if newest > token { Err(Stale::new(resource, token, newest).into()) } else { Ok(()) }
    }
}

/// The 39 digits of a token.
#[derive(Clone, Copy, Debug)]
struct Digits;

impl TableCodec<FencingToken> for Digits {
    fn encode(&self, token: &FencingToken) -> Result<Vec<u8>, DecodeFailure> {
        Ok(token.to_decimal().into_bytes())
    }

    fn decode(&self, data: &[u8]) -> Result<FencingToken, DecodeFailure> {
        Ok(FencingToken::from_decimal(std::str::from_utf8(data)?)?)
    }
}
