//! The client's task of a session ends without a word, as by a panic.

use std::sync::Arc;
use std::time::Duration;

use lockkeeper_testserver::TestServer;
use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};

use super::{LockQueue, Rule};
use crate::config::acl::Acl;
use crate::environment::ThisMachine;
use crate::manager::ConnectionManager;
use crate::time::deadline::Deadline;
use crate::wire::{Backend, Reply, Wire, WireError, ZooKeeper};
use crate::znode::name::Label;

/// So long that no answer is late on a busy machine.
const SESSION: Duration = Duration::from_secs(30);

/// Opens its first session on a runtime of its own, which runs the client's task of that session.
#[derive(Debug)]
struct OnAnotherRuntime {
    backend: ZooKeeper,
    first: Mutex<Option<Runtime>>,
}

impl Backend for OnAnotherRuntime {
    fn open(&self) -> Reply<Arc<dyn Wire>> {
        let opening = self.backend.open();
        match &*self.first.lock() {
            Some(runtime) => {
                let opened = runtime.spawn(opening);
                Box::pin(async {
                    opened.await.unwrap_or_else(|error| Err(WireError::Broken(error.to_string())))
                })
            }
            None => opening,
        }
    }
}

#[tokio::test]
async fn a_hold_is_lost_and_a_session_opened_anew_when_the_clients_task_has_ended() {
    let server = TestServer::start().await.unwrap();
    let servers = server.connect_string().parse().unwrap();
    let backend = ZooKeeper::new(&servers, SESSION, &[], &Acl::default(), None, None).unwrap();
    let first = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let backend = Arc::new(OnAnotherRuntime { backend, first: Mutex::new(Some(first)) });
    let builder = ConnectionManager::builder(&server.connect_string()).session_timeout(SESSION);
    let over: Arc<dyn Backend> = Arc::clone(&backend) as _;
    let manager = builder.connect_over(over, Arc::new(ThisMachine::here().unwrap())).await.unwrap();
    let queue = LockQueue::new(&manager, "/lock", Label::LOCK, Rule::MUTEX).unwrap();
    let held = queue.acquire(Deadline::never()).await.unwrap();

    backend.first.lock().take().unwrap().shutdown_background();
    held.lost().await;
    assert!(!held.is_valid());
    // As the server does by its clock. The node of the first session is in front until then.
    assert!(server.expire(server.sessions()[0]));
    let again = queue.acquire(Deadline::never()).await.unwrap();
    assert!(again.is_valid());
    again.release().await.unwrap();
}
