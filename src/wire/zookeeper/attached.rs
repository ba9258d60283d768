use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;

use futures::StreamExt;
use spawns_core::{Spawn, Task};
use tokio_util::sync::CancellationToken;
use zookeeper_client as client;

use super::convert::{changed_paths, our_watch};
use super::servers::Servers;
use crate::wire::{ChangedPaths, Watch, WatchEvent, WireError};

/// A client of the crate that is attached to the session.
///
/// Dropping it closes the session. A client that is [stopped](Self::stop) before leaves the session to the
/// next one: the crate has no call for that, so its task is ended from outside.
pub(super) struct Attached {
    pub(super) client: Arc<client::Client>,
    task: Arc<ClientTask>,
}

/// The task of a client.
pub(super) struct ClientTask {
    stopped: CancellationToken,
    /// The task has ended: it sends nothing any more.
    ended: CancellationToken,
}

impl Attached {
    /// Opens a session, or attaches to one. If the future is dropped, the session stays as it is.
    pub(super) async fn connect(
        servers: &Servers,
        session: Option<client::SessionInfo>,
    ) -> Result<Self, client::Error> {
        let task = ClientTask { stopped: CancellationToken::new(), ended: CancellationToken::new() };
        let connector = match session {
            Some(session) => servers.connector().with_session(session),
            None => servers.connector(),
        };
        let mut connecting = pin!(connector.connect(servers.list()));
        // The crate starts the task of the client during one of these polls.
        let connected = poll_fn(|context| {
            let _scope = spawns_core::enter(&task);
            connecting.as_mut().poll(context)
        });
        let client = Arc::new(connected.await?);
        Ok(Self { client, task: Arc::new(task) })
    }

    pub(super) fn task(&self) -> Arc<ClientTask> {
        Arc::clone(&self.task)
    }

    /// Ends the client, and does not close the session. Requests without an answer fail.
    pub(super) async fn stop(&self) {
        self.task.stopped.cancel();
        self.task.ended.cancelled().await;
    }
}

impl ClientTask {
    /// What an error of a request to this client means. A client that was stopped says as little as a broken
    /// connection.
    pub(super) fn error(&self, error: WireError) -> WireError {
        match error {
            WireError::SessionEnded(_) if self.stopped.is_cancelled() => moving(),
            other => other,
        }
    }

    /// The watch of a stopped client fires, because the node may have changed: the next one has to be set.
    pub(super) fn watch(&self, watcher: client::OneshotWatcher) -> Watch {
        let stopped = self.stopped.clone();
        Box::pin(async move {
            tokio::select! {
                biased;
                () = stopped.cancelled() => WatchEvent::Changed,
                event = our_watch(watcher) => match event {
                    WatchEvent::SessionEnded if stopped.is_cancelled() => WatchEvent::Changed,
                    event => event,
                },
            }
        })
    }

    pub(super) fn changed_paths(&self, watcher: client::PersistentWatcher) -> ChangedPaths {
        changed_paths(watcher).take_until(self.stopped.clone().cancelled_owned()).boxed()
    }
}

impl Spawn for ClientTask {
    fn spawn(&self, task: Task) {
        let (stopped, ended) = (self.stopped.clone(), self.ended.clone().drop_guard());
        tokio::spawn(async move {
            let _ended = ended;
            tokio::select! {
                biased;
                () = stopped.cancelled() => {}
                () = Box::into_pin(task.future) => {}
            }
        });
    }
}

/// The error of a request that a move to other servers has cut off.
pub(super) fn moving() -> WireError {
    WireError::Broken("the session moves to other servers".to_owned())
}
