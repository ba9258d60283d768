//! The lines of the log about nodes that belong to no session.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lockkeeper_testserver::TestServer;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::NoSubscriber;
use tracing::{Dispatch, Event, Level, Metadata, Subscriber};

use super::place::{Rendezvous, UNOWNED_MAX};
use crate::manager::ConnectionManager;
use crate::wire::Stat;
use crate::znode::zxid::Zxid;

/// Counts the warnings.
struct CountWarnings(Arc<AtomicUsize>);

impl Subscriber for CountWarnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() == Level::WARN
    }

    fn event(&self, _: &Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// How often `work` warns. It awaits nothing, so nothing else warns on its thread.
fn warnings(work: impl FnOnce()) -> usize {
    let count = Arc::<AtomicUsize>::default();
    // With one subscriber alone, tracing asks the thread that first meets a line of the log whether anyone
    // reads it: that may be a thread of another test, which has no subscriber.
    let _another = Dispatch::new(NoSubscriber::default());
    tracing::subscriber::with_default(CountWarnings(Arc::clone(&count)), work);
    count.load(Ordering::Relaxed)
}

/// A persistent node.
fn created_at(czxid: i64) -> Stat {
    let zxid = Zxid::new(czxid);
    Stat {
        czxid: zxid,
        mzxid: zxid,
        pzxid: zxid,
        ctime: 0,
        mtime: 0,
        version: 0,
        child_version: 0,
        ephemeral_owner: 0,
        data_length: 0,
        children: 0,
    }
}

async fn place() -> (TestServer, Rendezvous) {
    let server = TestServer::start().await.unwrap();
    let manager = ConnectionManager::connect(&server.connect_string()).await.unwrap();
    let place = Rendezvous::new(&manager, "/barrier").unwrap();
    (server, place)
}

#[tokio::test]
async fn a_node_that_belongs_to_no_session_is_logged_once() {
    let (_server, place) = place().await;
    let clone = place.clone();
    let logged = warnings(|| {
        for czxid in [1, 1, 2] {
            place.warn_of_unowned("copied", &created_at(czxid));
        }
        clone.warn_of_unowned("copied", &created_at(2));
    });
    assert_eq!(logged, 2, "one line for each of the nodes");
}

#[tokio::test]
async fn of_very_many_nodes_that_belong_to_no_session_some_are_logged() {
    let (_server, place) = place().await;
    let max = i64::try_from(UNOWNED_MAX).unwrap();
    let logged = warnings(|| (0..max + 10).for_each(|it| place.warn_of_unowned("copied", &created_at(it))));
    assert_eq!(logged, UNOWNED_MAX);
}
