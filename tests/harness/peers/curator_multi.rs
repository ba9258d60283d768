use std::time::Duration;

use super::curator::CuratorThread;
use super::error::PeerError;
use crate::timing::Timing;

impl CuratorThread {
    /// Acquires an `InterProcessMultiLock` of these paths, in this order; `false` when `timeout` passed by
    /// Curator's clock, which it gives to each of them.
    ///
    /// # Errors
    ///
    /// [`PeerError::Failed`] with what Curator threw.
    pub async fn together(&self, paths: &[&str], timeout: Option<Duration>) -> Result<bool, PeerError> {
        let milliseconds = timeout.map_or_else(|| "-1".to_owned(), |timeout| timeout.as_millis().to_string());
        let each = u32::try_from(paths.len()).unwrap_or(u32::MAX);
        let wait = timeout.map_or_else(Timing::settle, |timeout| timeout * each + Timing::event());
        Ok(self.ask("together", &paths.join(","), &format!(" {milliseconds}"), wait).await? == "in")
    }

    /// Releases it.
    ///
    /// # Errors
    ///
    /// As [`together`](Self::together).
    pub async fn apart(&self, paths: &[&str]) -> Result<(), PeerError> {
        self.ask("apart", &paths.join(","), "", Timing::event()).await.map(|_| ())
    }
}
