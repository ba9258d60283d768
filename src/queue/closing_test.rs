//! A shutdown that begins while a contender is granted.

use std::fmt::Debug;
use std::time::Duration;

use futures::FutureExt;
use lockkeeper_testserver::TestServer;
use tracing::field::Field;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::NoSubscriber;
use tracing::{Dispatch, Event, Metadata, Subscriber};

use super::{LockQueue, Rule};
use crate::error::Error;
use crate::manager::ConnectionManager;
use crate::time::deadline::Deadline;
use crate::znode::name::Label;

/// Begins a shutdown when a grant is logged: in the middle of a poll, as another thread can.
struct ShutDownAtGrant(ConnectionManager);

impl Subscriber for ShutDownAtGrant {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn event(&self, event: &Event<'_>) {
        let mut is_grant = false;
        event.record(&mut |field: &Field, value: &dyn Debug| {
            is_grant |= field.name() == "message" && format!("{value:?}") == "acquired";
        });
        if is_grant {
            // Closing continues when the future is dropped.
            drop(self.0.shutdown_within(Duration::from_secs(30)).now_or_never());
        }
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn a_shutdown_that_begins_before_a_hold_is_counted_refuses_the_hold() {
    let server = TestServer::start().await.unwrap();
    let manager = ConnectionManager::connect(&server.connect_string()).await.unwrap();
    let queue = LockQueue::new(&manager, "/lock", Label::LOCK, Rule::MUTEX).unwrap();

    // With one subscriber alone, tracing asks the thread that first meets a line of the log whether anyone
    // reads it: that may be a thread of another test, which has no subscriber.
    let _another = Dispatch::new(NoSubscriber::default());
    let _shutdown = tracing::subscriber::set_default(ShutDownAtGrant(manager.clone()));
    let acquired = queue.acquire(Deadline::never()).await;
    assert!(manager.is_closing(), "the log of the grant was not seen");
    assert!(matches!(acquired, Err(Error::Closed)), "granted although no shutdown waits for the hold");
}
