use tokio::sync::{Notify, oneshot};

/// The time of one node in this process, from its grant until its release.
pub(super) struct NodeTenure {
    pub(super) number: u64,
    /// Its drop ends the watching task.
    pub(super) _over: oneshot::Sender<()>,
}

/// What the state asks of the watching task.
#[derive(Default)]
pub(super) struct WatcherSignals {
    /// Notified when other contenders have to be watched.
    pub(super) watch_contenders: Notify,
    /// Notified when the node becomes idle.
    pub(super) time_idle: Notify,
}
