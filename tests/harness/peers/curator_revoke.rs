use super::curator::CuratorThread;
use super::error::PeerError;
use crate::timing::Timing;

impl CuratorThread {
    /// `InterProcessMutex.makeRevocable`, to be called before the acquire: this thread releases the mutex
    /// when it is asked to.
    ///
    /// # Errors
    ///
    /// [`PeerError::Failed`] with what Curator threw.
    pub async fn make_revocable(&self, path: &str) -> Result<(), PeerError> {
        self.ask("revocable", path, "", Timing::event()).await.map(|_| ())
    }

    /// `Revoker.attemptRevoke` of a contender's node.
    ///
    /// # Errors
    ///
    /// As [`make_revocable`](Self::make_revocable).
    pub async fn revoke(&self, node: &str) -> Result<(), PeerError> {
        self.ask("revoke", node, "", Timing::event()).await.map(|_| ())
    }
}
