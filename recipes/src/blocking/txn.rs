use lockkeeper_core::{CreateMode, IntoPath, Once, TxnError, TxnResult, Version};

use super::error::CannotBlock;
use super::runtime_thread::RuntimeThread;

/// Writes under a guard: all of them are committed or none, and none if the guard's node was deleted. See the
/// async [`Txn`](crate::Txn).
#[derive(Debug)]
#[must_use = "nothing is written before commit()"]
pub struct Txn<'a> {
    inner: lockkeeper_core::Txn<'a>,
    thread: &'a RuntimeThread,
}

impl<'a> Txn<'a> {
    pub(super) fn new(inner: lockkeeper_core::Txn<'a>, thread: &'a RuntimeThread) -> Self {
        Self { inner, thread }
    }

    /// Commits only if the node has this version.
    pub fn check(self, path: impl IntoPath, version: impl Into<Version>) -> Self {
        Self { inner: self.inner.check(path, version), ..self }
    }

    /// Creates a persistent node.
    pub fn create(self, path: impl IntoPath, data: impl Into<Vec<u8>>) -> Self {
        Self { inner: self.inner.create(path, data), ..self }
    }

    /// Creates a persistent node with a number appended to its name.
    pub fn create_sequential(self, path: impl IntoPath, data: impl Into<Vec<u8>>) -> Self {
        Self { inner: self.inner.create_sequential(path, data), ..self }
    }

    /// Creates a node.
    pub fn create_with(self, path: impl IntoPath, data: impl Into<Vec<u8>>, mode: CreateMode) -> Self {
        Self { inner: self.inner.create_with(path, data, mode), ..self }
    }

    /// Writes a node's data, if it has this version.
    pub fn set(self, path: impl IntoPath, data: impl Into<Vec<u8>>, version: impl Into<Version>) -> Self {
        Self { inner: self.inner.set(path, data, version), ..self }
    }

    /// Deletes a node, if it has this version.
    pub fn delete(self, path: impl IntoPath, version: impl Into<Version>) -> Self {
        Self { inner: self.inner.delete(path, version), ..self }
    }

    /// Adds the writes of another transaction, such as `manager.as_async().txn()`: see
    /// [`Txn::and`](crate::Txn::and).
    pub fn and(self, other: lockkeeper_core::Txn<'a>) -> Self {
        Self { inner: self.inner.and(other), ..self }
    }

    /// Makes the transaction one that is committed at most once: see [`Txn::once`](crate::Txn::once).
    pub fn once(self, marker: impl IntoPath) -> OnceTxn<'a> {
        OnceTxn { inner: self.inner.once(marker), thread: self.thread }
    }

    /// Commits all writes, if the guard's nodes still exist. One round trip.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`] within an async task: nothing was written. Otherwise as
    /// [`Txn::commit`](crate::Txn::commit).
    pub fn commit(self) -> Result<Vec<TxnResult>, TxnError> {
        let refused = |refused: CannotBlock| TxnError::Failed(refused.into());
        self.thread.block_checked(self.inner.commit()).map_err(refused)?
    }
}

/// A transaction that is committed at most once. See the async [`OnceTxn`](lockkeeper_core::OnceTxn).
#[derive(Debug)]
#[must_use = "nothing is written before commit()"]
pub struct OnceTxn<'a> {
    inner: lockkeeper_core::OnceTxn<'a>,
    thread: &'a RuntimeThread,
}

impl OnceTxn<'_> {
    /// Sets the data of the marker: see [`OnceTxn::with_data`](lockkeeper_core::OnceTxn::with_data).
    pub fn with_data(self, data: impl Into<Vec<u8>>) -> Self {
        Self { inner: self.inner.with_data(data), ..self }
    }

    /// Commits all writes and the marker, if the guard's nodes still exist and the marker does not.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`] within an async task: nothing was written. Otherwise as
    /// [`OnceTxn::commit`](lockkeeper_core::OnceTxn::commit).
    pub fn commit(self) -> Result<Once, TxnError> {
        let refused = |refused: CannotBlock| TxnError::Failed(refused.into());
        self.thread.block_checked(self.inner.commit()).map_err(refused)?
    }
}
