//! Work queues: each item is done once, whatever strikes.

mod calls;
mod ends;
mod faults;

use std::time::Duration;

use lockkeeper::work_queue::WorkItem;
use lockkeeper::znodes::CreateMode;
use lockkeeper::{ConnectionManager, Error, WorkQueue};
use lockkeeper_testserver::machine::Machine;

use crate::fixture::WRITTEN;
use crate::limit::within;
use crate::server_fixture::{LOCK, ServerFixture, builder, children};

/// So long that only the tested events end a session.
const SESSION: Duration = Duration::from_secs(30);

const ITEMS: &str = "/locks/lock/items";

type Queue = WorkQueue<String>;

async fn server() -> ServerFixture {
    let server_fixture = ServerFixture::start().await.unwrap();
    server_fixture.rival.znodes().create(WRITTEN, b"", CreateMode::Persistent).await.unwrap();
    server_fixture
}

async fn client(server_fixture: &ServerFixture) -> ConnectionManager {
    let client = builder(&server_fixture.server.connect_string()).session_timeout(SESSION);
    client.connect().await.unwrap()
}

fn queue(manager: &ConnectionManager) -> Queue {
    WorkQueue::new(manager, LOCK).unwrap()
}

async fn put(queue: &Queue, values: &[&str]) {
    for value in values {
        queue.put(&(*value).to_owned()).await.unwrap();
    }
}

async fn take(queue: &Queue) -> WorkItem<String> {
    within("an item", queue.take()).await.unwrap().unwrap()
}

/// Ends the item with a write of its value.
async fn write(item: WorkItem<String>) -> Result<(), Error> {
    let path = format!("{WRITTEN}/{}-", item.value());
    item.done_with(|txn| txn.create_sequential(path, b"".to_vec())).await
}

/// The values that were written, in order.
fn written(server_fixture: &ServerFixture) -> Vec<String> {
    let names = server_fixture.server.inspect(|machine| children(machine, WRITTEN));
    let mut values: Vec<String> =
        names.iter().filter_map(|name| Some(name.split_once('-')?.0.to_owned())).collect();
    values.sort();
    values
}

fn items(machine: &Machine) -> Vec<String> {
    children(machine, ITEMS)
}

/// Works off what is left.
async fn drain(queue: &Queue) {
    while let Some(item) = within("a try", queue.try_take()).await.unwrap().unwrap() {
        write(item).await.unwrap();
    }
}
