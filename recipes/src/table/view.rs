use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use lockkeeper_core::{
    ConnectionManager, DecodeError, Error, Snapshot, ViewBounds, ViewChanges, ViewState, ZnodePath,
};

use super::format::Format;
use super::key::{key_of, name_of};
use crate::shared_value::Revision;
use crate::view::ChildrenView;

/// A copy of the entries of a [`Table`](super::Table) that follows the servers: its reads send nothing.
///
/// It may be late by as much as its connection is; [`sync`](Self::sync) has everything that was committed
/// before. A clone is a handle to the same copy.
pub struct TableView<V> {
    view: ChildrenView<Option<V>>,
}

/// The entries of a [`TableView`] at one time.
pub struct TableSnapshot<V>(Arc<Snapshot<Option<V>>>);

/// The changes of a [`TableView`].
pub struct TableChanges<V>(ViewChanges<Option<V>>);

impl<V: Send + Sync + 'static> TableView<V> {
    pub(super) fn begin(
        manager: &ConnectionManager,
        path: &ZnodePath,
        format: &Format<V>,
        bounds: ViewBounds,
    ) -> Result<Self, Error> {
        let (format, table) = (format.clone(), path.clone());
        let whole = manager.whole_path(path);
        let view = ChildrenView::new_decoded(manager, table, bounds, move |name, data| match key_of(name) {
            Some(_) => format.decode(&format!("{whole}/{name}").into(), data),
            None => Ok(None),
        })?;
        Ok(Self { view })
    }
}

impl<V> TableView<V> {
    /// The latest entries. Takes no lock, and sends nothing.
    #[must_use]
    pub fn snapshot(&self) -> TableSnapshot<V> {
        TableSnapshot(self.view.snapshot())
    }

    /// Waits until the view is complete and followed: see [`View::ready`](crate::view::View::ready).
    ///
    /// # Errors
    ///
    /// As [`View::ready`](crate::view::View::ready).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: nothing is lost.
    pub async fn ready(&self) -> Result<TableSnapshot<V>, Error> {
        self.view.ready().await.map(TableSnapshot)
    }

    /// Waits until everything that was committed before this call is in the view: see
    /// [`View::sync`](crate::view::View::sync).
    ///
    /// # Errors
    ///
    /// As [`View::sync`](crate::view::View::sync).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: nothing is lost.
    pub async fn sync(&self) -> Result<TableSnapshot<V>, Error> {
        self.view.sync().await.map(TableSnapshot)
    }

    /// The changes from the latest snapshot on. A slow reader gets them merged, never with a gap.
    #[must_use]
    pub fn changes(&self) -> TableChanges<V> {
        TableChanges(self.view.changes())
    }
}

impl<V> TableSnapshot<V> {
    /// The value of a key, if it has an entry.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if the data of the node is no value; the text is that of the
    /// [`TableError`](super::TableError).
    pub fn get(&self, key: &str) -> Result<Option<&V>, DecodeError> {
        let node = name_of(key).ok().and_then(|name| self.0.get(&name));
        node.map_or(Ok(None), |node| node.value().map(Option::as_ref))
    }

    /// The last write of the entry of a key, if it has one.
    #[must_use]
    pub fn revision(&self, key: &str) -> Option<Revision> {
        let node = name_of(key).ok().and_then(|name| self.0.get(&name))?;
        let is_entry = !matches!(node.value(), Ok(None));
        is_entry.then(|| Revision::of(node.stat().mzxid))
    }

    /// The entries, in the order of the names of their nodes.
    pub fn iter(&self) -> impl Iterator<Item = (String, Result<&V, DecodeError>)> {
        self.0.iter().filter_map(|(name, node)| {
            let key = key_of(name)?;
            Some((key, node.value().map(Option::as_ref).transpose()?))
        })
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// Whether the entries are complete, and followed.
    #[must_use]
    pub fn state(&self) -> ViewState {
        self.0.state()
    }
}

impl<V> TableChanges<V> {
    /// Waits for the next change. Returns the entries behind it, and the keys whose entries differ, in no
    /// promised order; none if only the state differs. `None` after the end of the view.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: nothing is lost.
    pub async fn next(&mut self) -> Option<(TableSnapshot<V>, Vec<String>)> {
        let difference = self.0.next().await?;
        let keys = difference.changes().iter().filter_map(|change| key_of(change.path())).collect();
        Some((TableSnapshot(Arc::clone(difference.snapshot())), keys))
    }
}

impl<V> Clone for TableView<V> {
    fn clone(&self) -> Self {
        Self { view: self.view.clone() }
    }
}

impl<V> Clone for TableSnapshot<V> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<V> Debug for TableView<V> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        self.view.fmt(formatter)
    }
}

impl<V> Debug for TableSnapshot<V> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl<V> Debug for TableChanges<V> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}
