//! Watches that stay, at the client's end.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures::Stream;
use lockkeeper_core::simulation::{ChangedPaths, Reply, WatchDepth, WireError};
use lockkeeper_testserver::protocol::Request;
use lockkeeper_testserver::tree::WatchMode;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;

use crate::session::Answer;
use crate::wire::{broken, refused};
use crate::world::World;

/// The changed paths of one watch, or the answer to its request. Dropped, it removes the watch, if no other
/// one is on its path.
struct Changes {
    world: World,
    number: usize,
    path: String,
    answer: oneshot::Receiver<Result<Answer, WireError>>,
    received: Option<UnboundedReceiver<String>>,
}

/// Sets the watch.
pub(crate) fn watch(world: &World, number: usize, path: &str, depth: WatchDepth) -> Reply<ChangedPaths> {
    let mode = match depth {
        WatchDepth::Node => WatchMode::Persistent,
        WatchDepth::Tree => WatchMode::PersistentRecursive,
    };
    let path = path.to_owned();
    let answer = world.send(number, Request::AddWatch { path: path.clone(), mode }, None);
    let mut changes = Changes { world: world.clone(), number, path, answer, received: None };
    Box::pin(async move {
        let answer = (&mut changes.answer).await.unwrap_or_else(|_| Err(broken()))?;
        answer.result.map_err(refused)?;
        changes.received = answer.changes;
        let changes: ChangedPaths = Box::pin(changes);
        Ok(changes)
    })
}

impl Stream for Changes {
    type Item = String;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<String>> {
        match &mut self.received {
            Some(received) => received.poll_recv(context),
            None => Poll::Ready(None),
        }
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        self.answer.close();
        let received = self.received.take().or_else(|| self.answer.try_recv().ok()?.ok()?.changes);
        if received.is_some() {
            drop(received);
            self.world.unfollow(self.number, &self.path);
        }
    }
}
