//! The end of a task beside the beginning of the next one.

use lockkeeper_testserver::TestServer;

use super::worker::Worker;
use super::{Change, Register};
use crate::ConnectionManager;

#[tokio::test]
async fn a_task_that_ends_takes_no_change_from_the_next_one() {
    let server = TestServer::start().await.unwrap();
    let manager = ConnectionManager::connect(&server.connect_string()).await.unwrap();
    let register = Register::new(&manager, "/register").unwrap();
    let memory = register.inner.state.lock().memory.take().unwrap();
    let mut ending = Worker::new(&register.inner, memory);
    assert!(ending.next_batch().is_none(), "it gives the memory back");
    let mut next = Box::pin(register.update(|_| (Change::Write(b"1".to_vec()), ())));
    assert!(futures::poll!(next.as_mut()).is_pending(), "another task has the memory");
    drop(ending);
    next.await.unwrap();
}
