//! Curator's services and their instances.

use super::curator::CuratorThread;
use super::error::PeerError;
use crate::timing::Timing;

impl CuratorThread {
    /// Registers an instance with the name of this thread as its id. With a zone it has a payload of the
    /// class `Services$Zone`, and a URI.
    ///
    /// # Errors
    ///
    /// [`PeerError::Failed`] with what Curator threw.
    pub async fn announce(
        &self,
        path: &str,
        service: &str,
        port: u16,
        zone: Option<&str>,
    ) -> Result<(), PeerError> {
        let rest = format!(" {service} {port} {}", zone.unwrap_or("null"));
        self.ask("announce", path, &rest, Timing::event()).await.map(|_| ())
    }

    /// Ends the instance.
    ///
    /// # Errors
    ///
    /// As [`announce`](Self::announce).
    pub async fn withdraw(&self, path: &str) -> Result<(), PeerError> {
        self.ask("withdraw", path, "", Timing::event()).await.map(|_| ())
    }

    /// The instances that Curator reads, each `id=port,enabled,payload,uri`, sorted.
    ///
    /// # Errors
    ///
    /// As [`announce`](Self::announce).
    pub async fn lookup(&self, path: &str, service: &str) -> Result<Vec<String>, PeerError> {
        words(self.ask("lookup", path, &format!(" {service}"), Timing::event()).await)
    }

    /// The ids that a `ServiceProvider` gives in twenty calls, sorted.
    ///
    /// # Errors
    ///
    /// As [`announce`](Self::announce).
    pub async fn provide(&self, path: &str, service: &str) -> Result<Vec<String>, PeerError> {
        words(self.ask("provide", path, &format!(" {service} 20"), Timing::event()).await)
    }

    /// The data that Curator writes for an instance that it reads from a node: in its compatible mode, or
    /// with the field `enabled`.
    ///
    /// # Errors
    ///
    /// As [`announce`](Self::announce).
    pub async fn rewrite(&self, node: &str, is_compatible: bool) -> Result<String, PeerError> {
        self.ask("rewrite", node, &format!(" {is_compatible}"), Timing::event()).await
    }
}

fn words(answer: Result<String, PeerError>) -> Result<Vec<String>, PeerError> {
    Ok(answer?.split_whitespace().map(str::to_owned).collect())
}
