//! Work queues: each item is done once, whatever strikes.

mod calls;
mod cost;
mod ends;
mod faults;
mod layout_data;
mod layouts;
mod many_items;
mod read_ahead;
mod shards;

use std::time::Duration;

use lockkeeper::work_queue::WorkItem;
use lockkeeper::znodes::CreateMode;
use lockkeeper::{ConnectionManager, Error, WorkQueue};
use lockkeeper_testserver::Op;
use lockkeeper_testserver::machine::Machine;

use crate::fixture::WRITTEN;
use crate::limit::within;
use crate::server_fixture::{LOCK, ServerFixture, builder, children};

/// So long that only the tested events end a session.
const SESSION: Duration = Duration::from_secs(30);

const ITEMS: &str = "/locks/lock/items";

/// All but pings.
const OPS: [Op; 9] = [
    Op::GetData,
    Op::MultiRead,
    Op::GetChildren,
    Op::GetChildren2,
    Op::Exists,
    Op::Multi,
    Op::Create2,
    Op::Delete,
    Op::SetData,
];

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

/// Whose nodes a queue has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    Own,
    Curator,
    Priority,
    Delay,
    Id,
    Kazoo,
}

impl Layout {
    const OF_PEERS: [Self; 5] = [Self::Curator, Self::Priority, Self::Delay, Self::Id, Self::Kazoo];

    fn queue(self, manager: &ConnectionManager) -> Queue {
        let (path, claims) = (self.items(), self.claims());
        match self {
            Self::Own => queue(manager),
            Self::Curator => WorkQueue::in_curator_layout(manager, path, claims).unwrap(),
            Self::Priority => WorkQueue::in_curator_priority_layout(manager, path, claims).unwrap(),
            Self::Delay => WorkQueue::in_curator_delay_layout(manager, path, claims).unwrap(),
            Self::Id => WorkQueue::in_curator_id_layout(manager, path, claims).unwrap(),
            Self::Kazoo => WorkQueue::in_kazoo_layout(manager, LOCK).unwrap(),
        }
    }

    /// The directory of the items.
    fn items(self) -> &'static str {
        match self {
            Self::Own => ITEMS,
            Self::Kazoo => "/locks/lock/entries",
            _ => "/curator-queue",
        }
    }

    /// The directory of the claims. Also that of the workers, in Curator's layouts.
    fn claims(self) -> &'static str {
        if self == Self::Kazoo { "/locks/lock/taken" } else { LOCK }
    }

    /// The begin of a name that another client gives an item.
    fn name(self) -> &'static str {
        match self {
            Self::Own => "100-",
            Self::Curator => "queue-",
            Self::Priority => "queue-0FFFFFFFF",
            Self::Delay => "queue-|00000001|",
            Self::Id => "queue-|a|",
            Self::Kazoo => "entry-100-",
        }
    }
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
