//! Standalone servers that serve one test after another: most of the processor time of a test is the start of
//! its server.

use std::ops::Deref;
use std::sync::Arc;

use parking_lot::Mutex;

use super::Ensemble;
use crate::error::HarnessError;
use crate::wire::{self, RawClient};

/// Servers that no test uses now. The watchdogs end them with the process.
static IDLE: Mutex<Vec<Arc<Ensemble>>> = Mutex::new(Vec::new());

/// A standalone server that no other test uses. Dropping it gives it to the next test, unless a fault has
/// struck its process.
#[derive(Debug)]
pub struct LentServer(Arc<Ensemble>);

impl Deref for LentServer {
    type Target = Ensemble;

    fn deref(&self) -> &Ensemble {
        &self.0
    }
}

impl Drop for LentServer {
    fn drop(&mut self) {
        if self.servers().iter().all(|server| !server.was_struck()) {
            IDLE.lock().push(Arc::clone(&self.0));
        }
    }
}

impl Ensemble {
    /// A standalone server for one test, which may have served another one before: its tree is empty, and
    /// there is no session. For tests that leave no client behind; others [start](Ensemble::start) their own.
    ///
    /// # Errors
    ///
    /// As [`Ensemble::start`].
    pub async fn lend() -> Result<LentServer, HarnessError> {
        loop {
            let idle = IDLE.lock().pop();
            let Some(ensemble) = idle else { break };
            // One that cannot be cleared ends here.
            if ensemble.clear().await.is_ok() {
                return Ok(LentServer(ensemble));
            }
        }
        Ok(LentServer(Arc::new(Self::start(1).await?)))
    }

    /// Ends all sessions and deletes all nodes.
    async fn clear(&self) -> Result<(), HarnessError> {
        let servers = self.addresses();
        for session in self.dump().await?.sessions {
            wire::expire_session(&servers, session, &wire::session_password(session)).await?;
        }
        let mut client = self.raw().await?;
        for path in paths(&mut client).await?.iter().rev() {
            found(client.delete(path).await)?;
        }
        client.close().await
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
