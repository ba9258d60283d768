//! Curator's members of a group, and its persistent nodes.

use super::curator::CuratorThread;
use super::error::PeerError;
use crate::timing::Timing;

impl CuratorThread {
    /// Starts a `GroupMember` with the name of this thread as its id. Its node is made in the background.
    ///
    /// # Errors
    ///
    /// [`PeerError::Failed`] with what Curator threw.
    pub async fn join(&self, path: &str, payload: &str) -> Result<(), PeerError> {
        self.ask("join", path, &format!(" {payload}"), Timing::event()).await.map(|_| ())
    }

    /// The members that this one sees, each `id=payload`, sorted.
    ///
    /// # Errors
    ///
    /// As [`join`](Self::join).
    pub async fn members(&self, path: &str) -> Result<Vec<String>, PeerError> {
        let answer = self.ask("members", path, "", Timing::event()).await?;
        let mut members: Vec<String> = answer.split_whitespace().map(str::to_owned).collect();
        members.sort();
        Ok(members)
    }

    /// Ends the `GroupMember`.
    ///
    /// # Errors
    ///
    /// As [`join`](Self::join).
    pub async fn part(&self, path: &str) -> Result<(), PeerError> {
        self.ask("part", path, "", Timing::event()).await.map(|_| ())
    }

    /// Starts a `PersistentNode`, and waits until Curator believes that it has its node.
    ///
    /// # Errors
    ///
    /// As [`join`](Self::join).
    pub async fn register(&self, path: &str, data: &str) -> Result<(), PeerError> {
        self.ask("register", path, &format!(" {data}"), Timing::event()).await.map(|_| ())
    }

    /// Closes the `PersistentNode`, which deletes its node.
    ///
    /// # Errors
    ///
    /// As [`join`](Self::join).
    pub async fn unregister(&self, path: &str) -> Result<(), PeerError> {
        self.ask("unregister", path, "", Timing::event()).await.map(|_| ())
    }
}
