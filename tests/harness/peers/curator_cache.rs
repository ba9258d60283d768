//! Curator's cache of a tree, and writes by Curator.

use super::curator::CuratorThread;
use super::error::PeerError;
use crate::timing::Timing;

impl CuratorThread {
    /// Starts a `CuratorCache` of the tree at `path`, and waits for its `initialized`.
    ///
    /// # Errors
    ///
    /// [`PeerError::Failed`] with what Curator threw, or if the cache does not load.
    pub async fn cache(&self, path: &str) -> Result<(), PeerError> {
        self.ask("cache", path, "", Timing::settle()).await.map(|_| ())
    }

    /// The nodes of the cache at `path`: their paths and data, sorted by path.
    ///
    /// # Errors
    ///
    /// As [`cache`](Self::cache).
    pub async fn cached(&self, path: &str) -> Result<Vec<(String, String)>, PeerError> {
        let answer = self.ask("cached", path, "", Timing::event()).await?;
        let nodes = answer.split_whitespace().filter_map(|node| node.split_once('='));
        let mut nodes: Vec<_> = nodes.map(|(path, data)| (path.to_owned(), data.to_owned())).collect();
        nodes.sort();
        Ok(nodes)
    }

    /// Writes a node, and creates it and its parents if they are missing. `data` is without spaces, and not
    /// empty.
    ///
    /// # Errors
    ///
    /// As [`cache`](Self::cache).
    pub async fn put(&self, path: &str, data: &str) -> Result<(), PeerError> {
        self.ask("put", path, &format!(" {data}"), Timing::event()).await.map(|_| ())
    }

    /// Deletes a node and everything below it.
    ///
    /// # Errors
    ///
    /// As [`cache`](Self::cache).
    pub async fn remove(&self, path: &str) -> Result<(), PeerError> {
        self.ask("remove", path, "", Timing::event()).await.map(|_| ())
    }
}
