//! Watches that stay, at the client's end.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures::Stream;
use lockkeeper_core::simulation::{ChangedPaths, Reply, WatchDepth};
use lockkeeper_testserver::protocol::Request;
use lockkeeper_testserver::tree::WatchMode;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::wire::{broken, refused};
use crate::world::World;

/// The changed paths of one watch. Dropped, it removes the watch, if no other one is on its path.
struct Changes {
    world: World,
    number: usize,
    path: String,
    received: UnboundedReceiver<String>,
}

/// Sets the watch.
pub(crate) fn watch(world: &World, number: usize, path: &str, depth: WatchDepth) -> Reply<ChangedPaths> {
    let mode = match depth {
        WatchDepth::Node => WatchMode::Persistent,
        WatchDepth::Tree => WatchMode::PersistentRecursive,
    };
    let path = path.to_owned();
    let answer = world.send(number, Request::AddWatch { path: path.clone(), mode }, None);
    let world = world.clone();
    Box::pin(async move {
        let answer = answer.await.unwrap_or_else(|_| Err(broken()))?;
        answer.result.map_err(refused)?;
        let received = answer.changes.expect("a watch comes with its changes");
        let changes: ChangedPaths = Box::pin(Changes { world, number, path, received });
        Ok(changes)
    })
}

impl Stream for Changes {
    type Item = String;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<String>> {
        self.received.poll_recv(context)
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        self.received.close();
        self.world.unfollow(self.number, &self.path);
    }
}
