//! Ensembles that serve one test after another: most of the processor time of a test is the start of its
//! servers.

use std::ops::Deref;
use std::sync::Arc;

use parking_lot::Mutex;

use super::builder::EnsembleBuilder;
use super::{Between, Ensemble, Server};
use crate::error::HarnessError;
use crate::wire::{self, RawClient};

/// Ensembles that no test uses now, each with its settings. The watchdogs end them with the process.
static IDLE: Mutex<Vec<(EnsembleBuilder, Arc<Ensemble>)>> = Mutex::new(Vec::new());

/// An ensemble that no other test uses. Dropping it gives it to the next test, unless a fault has struck one
/// of its processes.
#[derive(Debug)]
pub struct LentEnsemble {
    settings: EnsembleBuilder,
    ensemble: Arc<Ensemble>,
}

impl Deref for LentEnsemble {
    type Target = Ensemble;

    fn deref(&self) -> &Ensemble {
        &self.ensemble
    }
}

impl Drop for LentEnsemble {
    fn drop(&mut self) {
        self.ensemble.between().into_iter().for_each(Between::mend_all);
        if !self.ensemble.servers().iter().any(Server::was_struck) {
            IDLE.lock().push((self.settings.clone(), Arc::clone(&self.ensemble)));
        }
    }
}

impl EnsembleBuilder {
    /// An ensemble with these settings for one test, which may have served another one before: its tree is
    /// empty, and there is no session. For tests that leave no client behind; others
    /// [start](EnsembleBuilder::start) their own.
    ///
    /// # Errors
    ///
    /// As [`EnsembleBuilder::start`].
    pub async fn lend(self) -> Result<LentEnsemble, HarnessError> {
        loop {
            let Some(ensemble) = self.take_idle() else { break };
            // One that cannot be cleared ends here.
            if ensemble.clear().await.is_ok() {
                return Ok(LentEnsemble { settings: self, ensemble });
            }
        }
        let ensemble = Arc::new(self.clone().start().await?);
        Ok(LentEnsemble { settings: self, ensemble })
    }

    fn take_idle(&self) -> Option<Arc<Ensemble>> {
        let mut idle = IDLE.lock();
        let index = idle.iter().position(|(settings, _)| settings == self)?;
        Some(idle.swap_remove(index).1)
    }
}

impl Ensemble {
    /// Lends a standalone server with the default settings, see [`EnsembleBuilder::lend`].
    ///
    /// # Errors
    ///
    /// As [`Ensemble::start`].
    pub async fn lend() -> Result<LentEnsemble, HarnessError> {
        Self::builder().lend().await
    }

    /// Ends all sessions and deletes all nodes, on every server.
    async fn clear(&self) -> Result<(), HarnessError> {
        let servers = self.addresses();
        for session in self.dump().await?.sessions {
            wire::expire_session(&servers, session, &wire::session_password(session)).await?;
        }
        let mut client = self.raw().await?;
        for path in paths(&mut client).await?.iter().rev() {
            found(client.delete(path).await)?;
        }
        client.close().await?;
        for server in servers {
            let mut client = RawClient::connect(server).await?;
            client.sync("/").await?;
            client.close().await?;
        }
        Ok(())
    }
}

/// All nodes but the server's own, each behind its parent.
async fn paths(client: &mut RawClient) -> Result<Vec<String>, HarnessError> {
    let mut paths: Vec<String> = client.children("/").await?.iter().map(|name| format!("/{name}")).collect();
    paths.retain(|path| path != "/zookeeper");
    let mut index = 0;
    while let Some(path) = paths.get(index).cloned() {
        let children = found(client.children(&path).await)?.unwrap_or_default();
        paths.extend(children.iter().map(|name| format!("{path}/{name}")));
        index += 1;
    }
    Ok(paths)
}

/// `None` if the server has removed the node meanwhile, as it does with an empty container.
fn found<T>(answer: Result<T, HarnessError>) -> Result<Option<T>, HarnessError> {
    match answer {
        Err(error) if error.is_no_node() => Ok(None),
        answer => answer.map(Some),
    }
}
