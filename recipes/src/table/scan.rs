use futures::{StreamExt, TryStreamExt, stream};
use lockkeeper_core::Error;

use super::error::TableError;
use super::handle::Table;
use super::key::{key_of, name_of};
use crate::shared_value::Revision;

/// The entries that a scan reads at a time.
const READS_MAX: usize = 64;

/// One entry of a [`scan`](Table::scan).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TableEntry<V> {
    /// The key.
    pub key: String,
    /// The value, or why the data of the node is none.
    pub value: Result<V, TableError>,
    /// The write that wrote it.
    pub revision: Revision,
}

impl<V: Send + Sync + 'static> Table<V> {
    /// The entries whose keys come behind `after`, in the order of the names of their nodes, at most `max` of
    /// them. To go on, call it again behind the last key.
    ///
    /// One list of all names, and one read for each entry returned, many at once. Entries that others add or
    /// remove meanwhile may be missing or may be there. Nodes that no table has written are left out if their
    /// name is that of no key.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] after the manager's operation timeout, [`Error::Refused`] (no right to list or to
    /// read), [`Error::NoAnswer`] (the connection broke: call again), [`Error::Config`] and
    /// [`Error::Closed`]. A value that cannot be read is an error of its entry alone.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the call changes nothing.
    pub async fn scan(&self, after: Option<&str>, max: u32) -> Result<Vec<TableEntry<V>>, Error> {
        let znodes = self.manager.znodes();
        let mut names = znodes.children(&self.path).await?.unwrap_or_default();
        if let Some(after) = after {
            let after = name_of(after)?;
            names.retain(|name| *name > after);
        }
        names.sort_unstable();
        let keys = names.into_iter().filter_map(|name| Some((key_of(&name)?, name)));
        let read = |(key, name): (String, String)| async move {
            let path = self.path.child(&name)?;
            let Some((data, stat)) = self.manager.znodes().read(&path).await? else { return Ok(None) };
            let value = self.format.decode(&self.manager.whole_path(&path), &data).transpose();
            let revision = Revision::of(stat.mzxid);
            Ok::<_, Error>(value.map(|value| TableEntry { key, value, revision }))
        };
        let entries = stream::iter(keys).map(read).buffered(READS_MAX);
        let entries = entries.try_filter_map(async |entry| Ok(entry));
        entries.take(usize::try_from(max).unwrap_or(usize::MAX)).try_collect().await
    }
}
