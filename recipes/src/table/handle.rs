use std::collections::HashMap;
use std::fmt::{self, Debug, Formatter};
use std::sync::{Arc, Weak};

use lockkeeper_core::{
    Change, ConnectionManager, DecodeFailure, Error, IntoPath, Register, RegisterInfo, ViewBounds, WholePath,
    ZnodePath,
};
use parking_lot::Mutex;

use super::codec::TableCodec;
use super::error::TableError;
use super::format::Format;
use super::key::path_of;
use super::stored::{REMOVED, Stored};
use super::sweep;
use super::view::TableView;
use crate::compare_and_set::CompareAndSet;
use crate::limits::own_path;
use crate::shared_value::{Revision, Versioned};

/// A map from texts to values of one type: the children of a path. What Curator calls a modeled framework.
///
/// A key is any text but the empty one. A value is JSON, or what a [codec](TableCodec) makes of it, of up to
/// a megabyte. A clone is the same table.
///
/// Use it for some thousands of entries that are read far more often than they are written: settings, routes,
/// quotas. It is no database. To read often, keep a [`view`](Self::view).
///
/// # Ordering
///
/// Linearizable for each key: every call for one key takes effect at one instant between its beginning and
/// its end. [`scan`](Self::scan) reads each entry at its own instant.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let manager = lockkeeper::ConnectionManager::connect(&server.connect_string()).await?;
/// use lockkeeper::Table;
/// use lockkeeper::table::Plain;
///
/// // With the feature `json`, `Table::new` takes every type that serde knows.
/// let quotas: Table<i64> = Table::with_codec(&manager, "/quotas", Plain)?;
/// assert!(quotas.insert("alice", 10).await?.is_set());
/// let raised = quotas.update("alice", |quota| quota.map(|quota| quota + 5)).await?;
/// assert_eq!(raised.expect("there is one").value, 15);
///
/// let seen = quotas.get("alice").await?.expect("there is one");
/// quotas.remove("alice", seen.revision).await?;
/// assert!(quotas.get("alice").await?.is_none());
/// # Ok(())
/// # }
/// ```
pub struct Table<V> {
    pub(super) manager: ConnectionManager,
    pub(super) path: ZnodePath,
    pub(super) format: Format<V>,
    /// The registers of the calls in progress, by path: calls for one key share one.
    registers: Arc<Mutex<HashMap<ZnodePath, Weak<Register>>>>,
}

/// The result of [`Table::remove`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the entry may still be there"]
pub enum Removal {
    /// The entry was removed by this call.
    Removed,
    /// There is no entry.
    Missing,
    /// The last write of the entry is this one, and not the one asked for. The entry stays.
    Differs(Revision),
}

#[cfg(feature = "json")]
impl<V: serde::Serialize + serde::de::DeserializeOwned + Send + Sync + 'static> Table<V> {
    /// Makes the table of the children of `path`, below the manager's chroot, with values in JSON. Sends
    /// nothing. The first write creates the path.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the path is malformed or the root.
    pub fn new(manager: &ConnectionManager, path: impl IntoPath) -> Result<Self, Error> {
        Self::with_codec(manager, path, super::codec::Json)
    }
}

impl<V: Send + Sync + 'static> Table<V> {
    /// As [`new`](Table::new), with another codec.
    ///
    /// # Errors
    ///
    /// As [`new`](Table::new).
    pub fn with_codec(
        manager: &ConnectionManager,
        path: impl IntoPath,
        codec: impl TableCodec<V>,
    ) -> Result<Self, Error> {
        let path = own_path(path, "give the table a path of its own")?;
        let (manager, registers) = (manager.clone(), Arc::default());
        Ok(Self { manager, path, format: Format::new(codec), registers })
    }

    /// Values are written with this schema version from now on. Default: 0, and a value is the bytes of the
    /// codec alone.
    ///
    /// `convert` makes a value of the bytes of an older schema, for each read of such an entry; the next
    /// write of the entry stores the new form. An entry with a newer schema is a
    /// [`TableError::NewerSchema`], and is not overwritten.
    #[must_use]
    pub fn with_schema(
        self,
        schema: u32,
        convert: impl Fn(u32, &[u8]) -> Result<V, DecodeFailure> + Send + Sync + 'static,
    ) -> Self {
        Self { format: self.format.with_schema(schema, Arc::new(convert)), ..self }
    }

    /// The path of the table, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        &self.path
    }

    /// The manager of the table.
    #[must_use]
    pub fn manager(&self) -> &ConnectionManager {
        &self.manager
    }

    /// The entry of a key now: that of the last write that ended before the call, or of a later one.
    ///
    /// # Errors
    ///
    /// [`TableError::Undecodable`] and [`TableError::NewerSchema`]; [`Error::Timeout`] after the manager's
    /// operation timeout, [`Error::Refused`] (no right to read), [`Error::Config`] (an empty key, or a name
    /// that is too long), [`Error::Closed`] after a shutdown.
    ///
    /// # Session loss
    ///
    /// Goes on in the next session.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the call changes nothing.
    pub async fn get(&self, key: &str) -> Result<Option<Versioned<V>>, Error> {
        let (register, format, path) = self.entry(key)?;
        let read = register.read(move |current| decoded(&format, &path, current.data()));
        let (value, zxid) = read.await?;
        Ok(value?.map(|value| Versioned { value, revision: Revision::of(zxid) }))
    }

    /// Adds an entry, if the key has none. Returns the present one otherwise.
    ///
    /// # Errors
    ///
    /// As [`update`](Self::update).
    ///
    /// # Session loss
    ///
    /// As [`update`](Self::update).
    ///
    /// # Cancel safety
    ///
    /// The entry may be added.
    pub async fn insert(&self, key: &str, value: V) -> Result<CompareAndSet<Versioned<V>>, Error> {
        let (register, format, path) = self.entry(key)?;
        let data = format.encode(&path, &value)?;
        let inserted = register.update(move |current| match decoded(&format, &path, current.data()) {
            Ok(None) => (Change::Write(data.clone()), Ok(None)),
            present => (Change::Keep, present),
        });
        let (present, zxid) = inserted.await?;
        let revision = Revision::of(zxid);
        Ok(match present? {
            None => CompareAndSet::Set(Versioned { value, revision }),
            Some(value) => CompareAndSet::Differs(Versioned { value, revision }),
        })
    }

    /// Changes the entry of a key by a function of its present value, by compare and set, and exactly once.
    /// `None` from the function leaves the entry as it is. Returns the entry after the call, if there is one.
    ///
    /// `change` may be called several times, and must depend on its argument alone.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`]: the change may be applied. Every other error says that it is not:
    /// [`TableError::Undecodable`] and [`TableError::NewerSchema`] (the present value),
    /// [`TableError::Unencodable`], [`Error::Timeout`] after the manager's operation timeout,
    /// [`Error::Refused`] (no right to write the node, or to create its child), [`Error::Config`] (too large,
    /// or a bad key) and [`Error::ServersReset`] (the servers have lost data). [`Error::Closed`] after a
    /// shutdown.
    ///
    /// # Session loss
    ///
    /// Goes on in the next session. The outcome is unknown only if the operation timeout passed while a
    /// request had no answer, or if the session ended before the answer, its nodes have been deleted, and the
    /// entry was changed since or did not exist before.
    ///
    /// # Cancel safety
    ///
    /// The change may be applied, once.
    pub async fn update(
        &self,
        key: &str,
        mut change: impl FnMut(Option<&V>) -> Option<V> + Send + 'static,
    ) -> Result<Option<Versioned<V>>, Error> {
        let (register, format, path) = self.entry(key)?;
        let updated = register.update(move |current| {
            let present = match decoded(&format, &path, current.data()) {
                Ok(present) => present,
                Err(error) => return (Change::Keep, Err(error)),
            };
            match change(present.as_ref()) {
                None => (Change::Keep, Ok(present)),
                Some(next) => match format.encode(&path, &next) {
                    Ok(data) => (Change::Write(data), Ok(Some(next))),
                    Err(error) => (Change::Keep, Err(error)),
                },
            }
        });
        let (value, zxid) = updated.await?;
        Ok(value?.map(|value| Versioned { value, revision: Revision::of(zxid) }))
    }

    /// Removes the entry of a key, exactly once: whatever it is, or only if its last write is the one of
    /// `revision`.
    ///
    /// The entry is gone when the call returns. Its node is deleted behind that. It stays for a while, with a
    /// mark as its data, if another client writes the entry at that moment, or if this process is killed:
    /// the next insert uses the node again, and the next remove deletes it.
    ///
    /// # Errors
    ///
    /// As [`update`](Self::update), but for the errors about values: no value is read.
    ///
    /// # Session loss
    ///
    /// As [`update`](Self::update).
    ///
    /// # Cancel safety
    ///
    /// The entry may be removed.
    pub async fn remove(&self, key: &str, revision: impl Into<Option<Revision>>) -> Result<Removal, Error> {
        let (register, _, _) = self.entry(key)?;
        let expected = revision.into().map(Revision::zxid);
        let removed = register.update(move |current| match current.data().map(Stored::of) {
            None | Some(Stored::Removed) => (Change::Keep, Removal::Missing),
            Some(Stored::Value { .. }) => match (expected, current.zxid()) {
                (Some(expected), Some(zxid)) if zxid != expected => {
                    (Change::Keep, Removal::Differs(Revision::of(zxid)))
                }
                _ => (Change::Write(REMOVED.to_vec()), Removal::Removed),
            },
        });
        let (removal, _) = removed.await?;
        let path = register.path().clone();
        drop(register);
        if !matches!(removal, Removal::Differs(_)) {
            sweep::delete_if_removed(&self.manager, &path).await;
        }
        Ok(removal)
    }

    /// Follows the entries, in the background, within the default [bounds](ViewBounds): a read of the view
    /// sends nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] without a tokio runtime; [`Error::Closed`] after a shutdown.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = lockkeeper_testserver::TestServer::start().await?;
    /// # let manager = lockkeeper::ConnectionManager::connect(&server.connect_string()).await?;
    /// use lockkeeper::Table;
    /// use lockkeeper::table::Plain;
    ///
    /// let colours: Table<String> = Table::with_codec(&manager, "/colours", Plain)?;
    /// let view = colours.view()?;
    /// colours.update("door", |_| Some("red".to_owned())).await?;
    /// let seen = view.sync().await?; // everything that was committed before
    /// assert_eq!(seen.get("door")?.map(String::as_str), Some("red"));
    /// assert_eq!(view.snapshot().iter().count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn view(&self) -> Result<TableView<V>, Error> {
        self.view_bounded(ViewBounds::default())
    }

    /// As [`view`](Self::view), within these bounds.
    ///
    /// # Errors
    ///
    /// As [`view`](Self::view).
    pub fn view_bounded(&self, bounds: ViewBounds) -> Result<TableView<V>, Error> {
        TableView::begin(&self.manager, &self.path, &self.format, bounds)
    }

    /// Reads the node of an entry and the sessions that write it: a snapshot, no older than the call. It
    /// writes nothing, and needs only the right to read.
    ///
    /// # Errors
    ///
    /// As [`Register::inspect`], and [`Error::Config`] for a bad key.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the call changes nothing.
    pub async fn inspect(&self, key: &str) -> Result<RegisterInfo, Error> {
        self.entry(key)?.0.inspect().await
    }

    /// The register of an entry, and what its decisions need. Calls for one key at the same time have one
    /// register. It is dropped behind the last of them, so that no entry keeps a writer node.
    fn entry(&self, key: &str) -> Result<(Arc<Register>, Format<V>, WholePath), Error> {
        let path = path_of(&self.path, key)?;
        let (format, whole) = (self.format.clone(), self.manager.whole_path(&path));
        let mut registers = self.registers.lock();
        if let Some(register) = registers.get(&path).and_then(Weak::upgrade) {
            return Ok((register, format, whole));
        }
        let register = Arc::new(Register::new(&self.manager, path.clone())?.with_metric_name("table"));
        registers.retain(|_, register| register.strong_count() > 0);
        registers.insert(path, Arc::downgrade(&register));
        Ok((register, format, whole))
    }
}

fn decoded<V: 'static>(
    format: &Format<V>,
    path: &WholePath,
    data: Option<&[u8]>,
) -> Result<Option<V>, TableError> {
    data.map_or(Ok(None), |data| format.decode(path, data))
}

impl<V> Clone for Table<V> {
    fn clone(&self) -> Self {
        Self {
            manager: self.manager.clone(),
            path: self.path.clone(),
            format: self.format.clone(),
            registers: Arc::clone(&self.registers),
        }
    }
}

impl<V> Debug for Table<V> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Table").field("path", &self.path).finish_non_exhaustive()
    }
}
