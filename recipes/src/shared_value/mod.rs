//! A value that many processes read and write.
//!
//! # Protocol
//!
//! The node has the bytes of the value and nothing else, as Curator's `SharedValue` and `SharedCount` have
//! it. A write is a transaction: it writes the value on condition of the node's version, and the writer node
//! of this process, an ephemeral child of the value. So a write is applied once, however often it is sent:
//! see [`Register`](lockkeeper_core::Register).
//!
//! A [`Revision`] is the zxid of the last write. A node that was deleted and created again has another one,
//! although its version may be the same, and a version that has overflowed does not matter.
//!
//! Sources: Apache Curator's `SharedValue` and `SharedCount`, CURATOR-688 (versions that overflow),
//! CURATOR-329 (the version 0).

mod data;
mod error;

use std::fmt::{self, Debug, Display, Formatter};
use std::panic::catch_unwind;
use std::sync::Arc;

use lockkeeper_core::Zxid;
use lockkeeper_core::{Change, ConfigError, ConnectionManager, Error, IntoPath, Register, ZnodePath};
use lockkeeper_core::{Current, REQUEST_BYTES_MAX, RegisterInfo};

pub use self::data::SharedData;
pub use self::error::SharedValueError;
use crate::compare_and_set::CompareAndSet;
use crate::view::NodeView;

/// A value that many processes read and write, in the bytes of Curator's `SharedValue`.
///
/// While the node does not exist, or its data is no value, the value is the *seed*. Reads create no
/// node. A clone is the same value.
///
/// # Ordering
///
/// Linearizable: every call takes effect at one instant between its beginning and its end.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let manager = lockkeeper::ConnectionManager::connect(&server.connect_string()).await?;
/// use lockkeeper::SharedValue;
///
/// let colour = SharedValue::new(&manager, "/values/colour", "red".to_owned())?;
/// let seen = colour.get().await?;
/// assert_eq!(seen.value, "red");
/// assert!(colour.compare_and_set(seen.revision, "blue".to_owned()).await?.is_set());
/// // The value was written since `seen`.
/// assert!(!colour.compare_and_set(seen.revision, "green".to_owned()).await?.is_set());
/// # Ok(())
/// # }
/// ```
pub struct SharedValue<T> {
    register: Register,
    seed: Arc<T>,
}

/// A number that many processes read and write, in the bytes of Curator's `SharedCount`.
///
/// To count, use [`Counter::new_i32`](crate::Counter::new_i32): it adds on the same node.
///
/// # Methods
///
/// Those of every [`SharedValue`].
pub type SharedCount = SharedValue<i32>;

/// A value, and which write of it that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Versioned<T> {
    /// The value.
    pub value: T,
    /// The write that wrote it.
    pub revision: Revision,
}

/// A write of a [`SharedValue`]: later writes of one value have greater revisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(Zxid);

impl Revision {
    /// That of a node that does not exist.
    pub const MISSING: Self = Self(Zxid::ZERO);

    pub(crate) const fn of(zxid: Zxid) -> Self {
        Self(zxid)
    }

    /// The zxid of the write, [`Zxid::ZERO`] if the node does not exist.
    #[must_use]
    pub fn zxid(self) -> Zxid {
        self.0
    }
}

impl Display for Revision {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(&self.0, formatter)
    }
}

/// The data of a node as a value, or what is wrong with it. `None`: the seed.
type Decoded<T> = Result<Option<T>, String>;

impl<T: SharedData + Clone + Send + Sync + 'static> SharedValue<T> {
    /// Makes the value at `path`, below the manager's chroot. Sends nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the path is malformed or the root.
    pub fn new(manager: &ConnectionManager, path: impl IntoPath, seed: T) -> Result<Self, Error> {
        Self::named(manager, path, seed, "shared_value")
    }

    /// A value of another recipe, whose metrics have this name.
    pub(crate) fn named(
        manager: &ConnectionManager,
        path: impl IntoPath,
        seed: T,
        metric_name: &'static str,
    ) -> Result<Self, Error> {
        let register = Register::new(manager, path)?.with_metric_name(metric_name);
        Ok(Self { register, seed: Arc::new(seed) })
    }

    pub(crate) fn register(&self) -> &Register {
        &self.register
    }

    /// The value of a state of the node.
    pub(crate) fn value_of(&self, current: &Current<'_>) -> Result<T, Error> {
        self.seeded(decoded(current))
    }

    /// The path of the value, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        self.register.path()
    }

    /// The manager of the value.
    #[must_use]
    pub fn manager(&self) -> &ConnectionManager {
        self.register.manager()
    }

    /// The value now. It is the one of the last write that ended before the call, or of a later one.
    ///
    /// # Errors
    ///
    /// [`SharedValueError::Undecodable`], [`Error::Timeout`] after the manager's operation timeout,
    /// [`Error::Refused`] (no right to read), [`Error::Closed`] after a shutdown.
    ///
    /// # Session loss
    ///
    /// Goes on in the next session.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the call changes nothing.
    pub async fn get(&self) -> Result<Versioned<T>, Error> {
        let (decoded, zxid) = self.register.read(|current| decoded::<T>(&current)).await?;
        self.versioned(decoded, zxid)
    }

    /// Sets the value, if its last write is the one of `revision`.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`]: the value may have been set. [`SharedValueError::Undecodable`] (the present value,
    /// if it is another one), [`Error::Timeout`] after the manager's operation timeout, [`Error::Refused`]
    /// (no right to write the node, or to create its child), [`Error::Config`] (too large) and
    /// [`Error::ServersReset`] (the servers have lost data): it was not set. [`Error::Closed`] after a
    /// shutdown.
    ///
    /// # Session loss
    ///
    /// Goes on in the next session. The outcome is unknown only if the operation timeout passed while a
    /// request had no answer, or if the session ended before the answer, its nodes have been deleted, and the
    /// value was changed since or did not exist before.
    ///
    /// # Cancel safety
    ///
    /// The value may be set.
    pub async fn compare_and_set(
        &self,
        revision: Revision,
        value: T,
    ) -> Result<CompareAndSet<Versioned<T>>, Error> {
        let data = encoded(&value)?;
        let set = self.register.update(move |current| match current.zxid() {
            Some(zxid) if zxid == revision.0 => (Change::Write(data.clone()), None),
            _ => (Change::Keep, Some(decoded::<T>(&current))),
        });
        match set.await? {
            (None, zxid) => Ok(CompareAndSet::Set(Versioned { value, revision: Revision(zxid) })),
            (Some(other), zxid) => Ok(CompareAndSet::Differs(self.versioned(other, zxid)?)),
        }
    }

    /// Sets the value, whatever it is before. Returns the revision of this write.
    ///
    /// # Errors
    ///
    /// As [`compare_and_set`](Self::compare_and_set).
    ///
    /// # Session loss
    ///
    /// As [`compare_and_set`](Self::compare_and_set).
    ///
    /// # Cancel safety
    ///
    /// The value may be set.
    pub async fn set(&self, value: T) -> Result<Revision, Error> {
        let data = encoded(&value)?;
        let ((), zxid) = self.register.update(move |_| (Change::Write(data.clone()), ())).await?;
        Ok(Revision(zxid))
    }

    /// Follows the value, in the background: a [`NodeView`] whose nodes have the value. While the node does
    /// not exist, the view has no node, and the value is the seed.
    ///
    /// A view may be late by as much as its connection is; its `sync` has everything that was set before.
    ///
    /// # Errors
    ///
    /// As [`NodeView::new`].
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = lockkeeper_testserver::TestServer::start().await?;
    /// # let manager = lockkeeper::ConnectionManager::connect(&server.connect_string()).await?;
    /// use lockkeeper::SharedCount;
    ///
    /// let count = SharedCount::new(&manager, "/values/workers", 4)?;
    /// let view = count.view()?;
    /// count.set(16).await?;
    /// view.sync().await?;
    /// let node = view.node().expect("it exists");
    /// assert_eq!(node.value()?, &16);
    /// # Ok(())
    /// # }
    /// ```
    pub fn view(&self) -> Result<NodeView<T>, Error> {
        let seed = Arc::clone(&self.seed);
        NodeView::new_decoded(self.manager(), self.path().clone(), move |data| {
            T::decode(data).map(|value| value.unwrap_or_else(|| T::clone(&seed)))
        })
    }

    /// Reads the node and the sessions that write it: a snapshot, no older than the call. It writes nothing,
    /// and needs only the right to read. Clients of Curator are not shown.
    ///
    /// # Errors
    ///
    /// As [`Register::inspect`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the call changes nothing.
    pub async fn inspect(&self) -> Result<RegisterInfo, Error> {
        self.register.inspect().await
    }

    fn versioned(&self, decoded: Decoded<T>, zxid: Zxid) -> Result<Versioned<T>, Error> {
        Ok(Versioned { value: self.seeded(decoded)?, revision: Revision(zxid) })
    }

    fn seeded(&self, decoded: Decoded<T>) -> Result<T, Error> {
        match decoded {
            Ok(value) => Ok(value.unwrap_or_else(|| T::clone(&self.seed))),
            Err(cause) => {
                let path = self.manager().whole_path(self.path());
                Err(SharedValueError::Undecodable { path, cause }.into())
            }
        }
    }
}

/// A decoder that panics fails, as that of a view.
fn decoded<T: SharedData>(current: &Current<'_>) -> Decoded<T> {
    let Some(data) = current.data() else { return Ok(None) };
    match catch_unwind(|| T::decode(data).map_err(|error| error.to_string())) {
        Ok(decoded) => decoded,
        Err(_) => Err("the decoder panicked".to_owned()),
    }
}

/// The data of a value that fits into a request.
fn encoded<T: SharedData>(value: &T) -> Result<Vec<u8>, Error> {
    let data = value.encode();
    if data.len() > REQUEST_BYTES_MAX {
        return Err(ConfigError::DataTooLarge { bytes: data.len(), max: REQUEST_BYTES_MAX }.into());
    }
    Ok(data)
}

impl<T> Clone for SharedValue<T> {
    fn clone(&self) -> Self {
        Self { register: self.register.clone(), seed: Arc::clone(&self.seed) }
    }
}

impl<T> Debug for SharedValue<T> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SharedValue").field("path", self.register.path()).finish_non_exhaustive()
    }
}
