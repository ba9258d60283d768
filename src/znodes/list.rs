use futures::{StreamExt, TryStreamExt, stream};

use super::handle::{Znodes, read_in_sync};
use crate::error::{Error, Operation};
use crate::session::Session;
use crate::wire::{Stat, existing};
use crate::znode::path::IntoPath;

/// The requests of one call that are in flight at a time.
pub(super) const IN_FLIGHT_MAX: usize = 64;

impl Znodes {
    /// A node's stat; `None` if the node does not exist. Its data is not read.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = lockkeeper_testserver::TestServer::start().await?;
    /// # let manager = lockkeeper_core::ConnectionManager::connect(&server.connect_string()).await?;
    /// let znodes = manager.znodes();
    /// assert!(znodes.exists("/shop/prices").await?.is_none());
    /// znodes.ensure("/shop/prices").await?;
    /// let stat = znodes.exists("/shop/prices").await?.expect("it exists");
    /// assert_eq!((stat.version, stat.children), (0, 0));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn exists(&self, path: impl IntoPath) -> Result<Option<Stat>, Error> {
        let full = &self.manager.full_path(&path.into_path()?)?;
        let exists = |session: Session, deadline| async move {
            read_in_sync(&session, || session.read(|wire| wire.exists(full.as_str())), deadline).await
        };
        self.until_read(Operation::Read, full, exists).await
    }

    /// The names of a node's children, in no order; `None` if the node does not exist.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub async fn children(&self, path: impl IntoPath) -> Result<Option<Vec<String>>, Error> {
        let full = &self.manager.full_path(&path.into_path()?)?;
        let list = |session: Session, deadline| async move {
            let list = || session.read(|wire| wire.children(full.as_str()));
            existing(read_in_sync(&session, list, deadline).await)
        };
        self.until_read(Operation::List, full, list).await
    }

    /// The names and stats of a node's children, in the order of their names; `None` if the node does not
    /// exist. One list, and one read for each child, many at once.
    ///
    /// The stats are not of one moment. A child that is deleted meanwhile is left out.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub async fn children_with_stats(
        &self,
        path: impl IntoPath,
    ) -> Result<Option<Vec<(String, Stat)>>, Error> {
        let path = path.into_path()?;
        let Some(mut names) = self.children(&path).await? else { return Ok(None) };
        names.sort_unstable();
        let stat = |name: String| async {
            let stat = self.exists(path.child(&name)?).await?;
            Ok::<_, Error>(stat.map(|stat| (name, stat)))
        };
        let stats = stream::iter(names).map(stat).buffered(IN_FLIGHT_MAX);
        Ok(Some(stats.try_filter_map(async |stat| Ok(stat)).try_collect().await?))
    }
}
