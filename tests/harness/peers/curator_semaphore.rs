//! Curator's semaphores, in the hands of a [`CuratorThread`].

use std::time::Duration;

use super::curator::CuratorThread;
use super::error::PeerError;
use crate::timing::Timing;

impl CuratorThread {
    /// Takes permits of an `InterProcessSemaphoreV2`; yields the names of their nodes, or `None` when
    /// `timeout` passed by Curator's clock. `limit` is a number, or the path of a `SharedCount`; the first
    /// one asked for counts.
    ///
    /// # Errors
    ///
    /// [`PeerError::Failed`] with what Curator threw. So do all requests below.
    pub async fn permits(
        &self,
        path: &str,
        limit: &str,
        permits: u32,
        timeout: Option<Duration>,
    ) -> Result<Option<Vec<String>>, PeerError> {
        let milliseconds = timeout.map_or_else(|| "-1".to_owned(), |timeout| timeout.as_millis().to_string());
        let wait = timeout.map_or_else(Timing::settle, |timeout| timeout + Timing::event());
        let answer = self.ask("permits", path, &format!(" {limit} {permits} {milliseconds}"), wait).await?;
        Ok((!answer.is_empty()).then(|| answer.split(' ').map(str::to_owned).collect()))
    }

    /// Releases `count` permits, the oldest first.
    ///
    /// # Errors
    ///
    /// As [`permits`](Self::permits).
    pub async fn return_permits(&self, path: &str, permits: u32) -> Result<(), PeerError> {
        self.ask("return", path, &format!(" {permits}"), Timing::event()).await.map(|_| ())
    }

    /// Acquires an `InterProcessSemaphoreMutex`; `false` when `timeout` passed by Curator's clock.
    ///
    /// # Errors
    ///
    /// As [`permits`](Self::permits).
    pub async fn enter(&self, path: &str, timeout: Option<Duration>) -> Result<bool, PeerError> {
        let milliseconds = timeout.map_or_else(|| "-1".to_owned(), |timeout| timeout.as_millis().to_string());
        let wait = timeout.map_or_else(Timing::settle, |timeout| timeout + Timing::event());
        Ok(self.ask("enter", path, &format!(" {milliseconds}"), wait).await? == "in")
    }

    /// Releases an `InterProcessSemaphoreMutex`.
    ///
    /// # Errors
    ///
    /// As [`permits`](Self::permits).
    pub async fn leave(&self, path: &str) -> Result<(), PeerError> {
        self.ask("leave", path, "", Timing::event()).await.map(|_| ())
    }

    /// Sets a `SharedCount`.
    ///
    /// # Errors
    ///
    /// As [`permits`](Self::permits).
    pub async fn set_count(&self, path: &str, number: usize) -> Result<(), PeerError> {
        self.ask("count", path, &format!(" {number}"), Timing::event()).await.map(|_| ())
    }
}
