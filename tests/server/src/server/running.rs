use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio::time::sleep;

use super::shared::Shared;
use super::{StartError, runtime};
use crate::machine::Machine;

/// The runtime of all servers of an ensemble; stops with the last of them.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) shared: Arc<Shared>,
    pub(super) runtime: Handle,
    ticker: AbortHandle,
}

impl Running {
    pub(super) fn start(shared: Shared) -> Result<Arc<Self>, StartError> {
        let runtime = runtime::handle()?;
        let shared = Arc::new(shared);
        let ticker = runtime.spawn(tick(Arc::clone(&shared))).abort_handle();
        Ok(Arc::new(Self { shared, runtime, ticker }))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.ticker.abort();
    }
}

/// Lets the machine do what falls due.
async fn tick(shared: Arc<Shared>) {
    loop {
        // The leader keeps the sessions; while it is frozen, no session expires. Another one may take over.
        let leader = shared.inspect(Machine::leader);
        if let Some(front) = leader.and_then(|leader| shared.fronts.get(leader)) {
            tokio::select! {
                () = front.thawed() => {}
                () = shared.rearm.notified() => continue,
            }
        }
        let wait = shared.tick();
        tokio::select! {
            () = sleep(wait) => {}
            () = shared.rearm.notified() => {}
        }
    }
}
