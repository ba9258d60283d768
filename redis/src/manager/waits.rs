use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

/// The waiters of a manager, by their ids: where the messages of grants go.
#[derive(Debug, Default)]
pub(crate) struct Waits(Mutex<HashMap<Arc<str>, watch::Sender<u64>>>);

/// A waiter among them. Its drop removes it.
#[derive(Debug)]
pub(crate) struct Wait<'a> {
    waits: &'a Waits,
    id: Arc<str>,
    granted: watch::Receiver<u64>,
}

impl Waits {
    pub(crate) fn register(&self, id: &Arc<str>) -> Wait<'_> {
        let (sender, granted) = watch::channel(0);
        self.0.lock().insert(Arc::clone(id), sender);
        Wait { waits: self, id: Arc::clone(id), granted }
    }

    /// Tells the waiter of a grant with this token.
    pub(super) fn deliver(&self, id: &str, token: u64) {
        if let Some(granted) = self.0.lock().get(id) {
            granted.send_modify(|newest| *newest = token.max(*newest));
        }
    }
}

impl Wait<'_> {
    /// Resolves with a grant that is newer than this token: an older one belongs to a lease that has ended.
    pub(crate) async fn granted_after(&mut self, newest: u64) -> u64 {
        match self.granted.wait_for(|token| *token > newest).await.map(|token| *token) {
            Ok(token) => token,
            Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.waits.0.lock().remove(&self.id);
    }
}
