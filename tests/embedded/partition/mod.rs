//! Partitions: each item with one member, only what has to move moves, through every fault.

mod changes;
mod faults;
mod members;

use std::collections::BTreeMap;
use std::sync::Arc;

use lockkeeper::partition::PartitionMember;
use lockkeeper::{ConnectionManager, Error, Partition};
use lockkeeper_test_recipes::partition::{Board, work};
use lockkeeper_testserver::machine::Machine;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::limit::within;
use crate::presence::client;
use crate::server_fixture::{ServerFixture, children};

pub(super) const PATH: &str = "/shards";

pub(super) fn partition(manager: &ConnectionManager) -> Partition {
    Partition::new(manager, PATH).unwrap()
}

pub(super) fn items(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{number:02}")).collect()
}

/// Where the items are when all these members agree.
pub(super) fn expected(items: &[String], members: &[&str]) -> BTreeMap<String, String> {
    let owner = |item: &String| {
        let owner = Partition::owner_among(item, members.iter().copied())?;
        Some((item.clone(), owner.to_owned()))
    };
    items.iter().filter_map(owner).collect()
}

/// A member that works on its items, with a client of its own.
pub(super) struct Worker {
    pub(super) manager: ConnectionManager,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), Error>>,
}

impl Worker {
    pub(super) async fn start(server_fixture: &ServerFixture, id: &str, board: &Arc<Board>) -> Self {
        let manager = client(server_fixture).await;
        let member = partition(&manager).join(id).unwrap();
        Self::of(manager, member, board)
    }

    pub(super) fn of(manager: ConnectionManager, member: PartitionMember, board: &Arc<Board>) -> Self {
        let (stop, stopped) = oneshot::channel();
        let board = Arc::clone(board);
        let task = tokio::spawn(async move { work(member, &board, async { _ = stopped.await }).await });
        Self { manager, stop, task }
    }

    /// Leaves, and hands over.
    pub(super) async fn leave(self) {
        self.end().await.unwrap();
    }

    /// As `leave`, where the connection may be cut.
    pub(super) async fn end(self) -> Result<(), Error> {
        drop(self.stop);
        within("the end of the member", self.task).await.unwrap().unwrap()
    }

    /// Drops the member, and its guards but for those on the board.
    pub(super) async fn abort(self) {
        self.task.abort();
        assert!(within("the end of the task", self.task).await.unwrap().unwrap_err().is_cancelled());
    }
}

/// Waits until the items are where they belong.
pub(super) async fn settled(board: &Board, items: &[String], members: &[&str]) {
    let expected = expected(items, members);
    if let Err(error) = within("the items to settle", board.owners_become(&expected)).await {
        panic!("{error}: they are at {:?}, and belong to {expected:?}", board.owners());
    }
    assert_eq!(board.violations(), Vec::<String>::new());
}

/// The session that owns the node of a member.
pub(super) fn session_of(server_fixture: &ServerFixture, id: &str) -> i64 {
    let path = format!("{PATH}/members/{id}");
    server_fixture.server.inspect(|machine| machine.tree().node(&path).unwrap().stat().ephemeral_owner)
}

/// The members' nodes, and the contenders' nodes of all items.
pub(super) fn nodes(machine: &Machine) -> Vec<String> {
    let members = children(machine, &format!("{PATH}/members"));
    let items = children(machine, &format!("{PATH}/locks"));
    let contenders = items.iter().flat_map(|item| children(machine, &format!("{PATH}/locks/{item}")));
    members.into_iter().chain(contenders).collect()
}

pub(super) async fn nothing_is_left(server_fixture: &ServerFixture) {
    let gone = server_fixture.server.wait_until(|machine| nodes(machine).is_empty());
    if let Err(error) = within("the end of all nodes", gone).await {
        panic!("{error}: {:?}", server_fixture.server.inspect(nodes));
    }
}
