use lockkeeper_core::{Error, IntoPath, ZnodePath};

use super::generic::Blocking;
use super::manager::ConnectionManager;
use super::view::NodeView;
use crate::{CompareAndSet, RegisterInfo, Revision, SharedData, Versioned};

/// A value that many processes read and write, for threads. Everything is as for the async
/// [`SharedValue`](crate::SharedValue).
///
/// # Examples
///
/// ```
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # let server = runtime.block_on(lockkeeper_testserver::TestServer::start())?;
/// # let manager = lockkeeper::blocking::ConnectionManager::connect(&server.connect_string())?;
/// use lockkeeper::blocking::SharedValue;
///
/// let colour = SharedValue::new(&manager, "/values/colour", "red".to_owned())?;
/// let seen = colour.get()?;
/// assert!(colour.compare_and_set(seen.revision, "blue".to_owned())?.is_set());
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub type SharedValue<T> = Blocking<crate::SharedValue<T>>;

/// A number that many processes read and write: see [`SharedCount`](crate::SharedCount).
pub type SharedCount = SharedValue<i32>;

impl<T: SharedData + Clone + Send + Sync + 'static> SharedValue<T> {
    /// Makes the value at `path`, below the manager's chroot. Sends nothing.
    ///
    /// # Errors
    ///
    /// As [`SharedValue::new`](crate::SharedValue::new).
    pub fn new(manager: &ConnectionManager, path: impl IntoPath, seed: T) -> Result<Self, Error> {
        Ok(Self::on(manager, crate::SharedValue::new(manager.as_async(), path, seed)?))
    }

    /// The path of the value, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        self.inner.path()
    }

    /// The value now.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as
    /// [`SharedValue::get`](crate::SharedValue::get).
    pub fn get(&self) -> Result<Versioned<T>, Error> {
        self.block(self.inner.get())
    }

    /// Sets the value, if its last write is the one of `revision`.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as
    /// [`SharedValue::compare_and_set`](crate::SharedValue::compare_and_set).
    pub fn compare_and_set(
        &self,
        revision: Revision,
        value: T,
    ) -> Result<CompareAndSet<Versioned<T>>, Error> {
        self.block(self.inner.compare_and_set(revision, value))
    }

    /// Sets the value, whatever it is before. Returns the revision of this write.
    ///
    /// # Errors
    ///
    /// As [`compare_and_set`](Self::compare_and_set).
    pub fn set(&self, value: T) -> Result<Revision, Error> {
        self.block(self.inner.set(value))
    }

    /// Follows the value, in the background: see [`SharedValue::watch`](crate::SharedValue::watch).
    ///
    /// # Errors
    ///
    /// As [`NodeView::new`].
    pub fn watch(&self) -> Result<NodeView<T>, Error> {
        // The task of the view runs on the thread of the manager.
        let watch = async { self.inner.watch() };
        Ok(self.beside(self.block(watch)?))
    }

    /// Reads the node and the sessions that write it: a snapshot, no older than the call.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as
    /// [`SharedValue::inspect`](crate::SharedValue::inspect).
    pub fn inspect(&self) -> Result<RegisterInfo, Error> {
        self.block(self.inner.inspect())
    }
}
