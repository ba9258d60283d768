//! The servers of a living manager are replaced: what is held stays, or its loss is said.

use std::sync::Arc;
use std::time::Duration;

use lockkeeper::error::ConfigError;
use lockkeeper::manager::State;
use lockkeeper::znodes::{CreateMode, Znodes};
use lockkeeper::{ConnectionManager, Error, Mutex, MutexGuard, TreeView};
use lockkeeper_testserver::machine::Machine;
use lockkeeper_testserver::{ErrorCode, Fault, Op, TestEnsemble, TestServer, When};

use crate::limit::{becomes, within};
use crate::server_fixture::{LOCK, SESSION, TICK, builder, children, servers};

/// So long that only the tested events end a session.
const LONG: Duration = Duration::from_secs(30);

async fn ensemble() -> TestEnsemble {
    let servers = servers().tick(TICK).session_timeouts(TICK * 2, LONG * 2);
    servers.start_ensemble(3).await.unwrap()
}

/// The connect string of these servers.
fn list(ensemble: &TestEnsemble, indices: &[usize]) -> String {
    let servers: Vec<String> =
        indices.iter().map(|index| server(ensemble, *index).connect_string()).collect();
    servers.join(",")
}

fn server(ensemble: &TestEnsemble, index: usize) -> &TestServer {
    ensemble.server(index).unwrap()
}

async fn client(servers: &str) -> ConnectionManager {
    builder(servers).session_timeout(LONG).connect().await.unwrap()
}

async fn take(manager: &ConnectionManager) -> MutexGuard {
    within("the lock", Mutex::new(manager, LOCK).unwrap().acquire()).await.unwrap().unwrap()
}

async fn move_to(manager: &ConnectionManager, servers: &str) {
    within("the move", manager.set_servers(servers)).await.unwrap().unwrap();
}

fn contenders(machine: &Machine) -> usize {
    children(machine, LOCK).len()
}

/// A waiter that has its place.
async fn waiter(
    manager: &ConnectionManager,
    ensemble: &TestEnsemble,
) -> tokio::task::JoinHandle<Result<MutexGuard, Error>> {
    let before = server(ensemble, 0).inspect(contenders);
    let mutex = Mutex::new(manager, LOCK).unwrap();
    let waiting = tokio::spawn(async move { mutex.acquire().await });
    let queued = server(ensemble, 0).wait_until(|machine| contenders(machine) == before + 1);
    within("a place in the queue", queued).await.unwrap();
    waiting
}

#[tokio::test]
async fn a_hold_survives_while_every_server_is_replaced_and_the_former_one_is_stopped() {
    let ensemble = ensemble().await;
    let manager = client(&list(&ensemble, &[0, 1])).await;
    let epoch = manager.state();
    let guard = take(&manager).await;
    let token = guard.fencing_token();
    move_to(&manager, &list(&ensemble, &[1, 2])).await;
    server(&ensemble, 0).stop().await;
    manager.znodes().create("/first", "", CreateMode::Persistent).await.unwrap();
    move_to(&manager, &list(&ensemble, &[2])).await;
    server(&ensemble, 1).stop().await;
    guard.txn().create("/second", "").commit().await.unwrap();
    assert_eq!((manager.state(), guard.check().is_ok(), guard.fencing_token()), (epoch, true, token));
    assert_eq!(server(&ensemble, 2).sessions().len(), 1);
    guard.release().await.unwrap();
    manager.shutdown().await.unwrap();
    assert_eq!(server(&ensemble, 2).sessions(), Vec::<i64>::new());
}

#[tokio::test]
async fn after_a_move_no_connection_is_at_a_former_server_and_none_is_opened_there() {
    let ensemble = ensemble().await;
    let manager = client(&list(&ensemble, &[0])).await;
    let view = TreeView::new(&manager, "/tree").unwrap();
    within("the view", view.ready()).await.unwrap().unwrap();
    move_to(&manager, &list(&ensemble, &[1, 2])).await;
    let former = server(&ensemble, 0).fault(When::request().server(0).always(), Fault::DropReply);
    let connects = server(&ensemble, 0).fault(When::connect().server(0).always(), Fault::DropReply);
    // The sessions are moved to another server, and back to a new one.
    server(&ensemble, 1).stop().await;
    server(&ensemble, 2).drop_connections();
    assert!(!within("a read", read_until_answered(&manager.znodes(), "/tree")).await.unwrap());
    within("the view", view.sync()).await.unwrap().unwrap();
    assert_eq!((former.hits(), connects.hits()), (0, 0));
}

#[tokio::test]
async fn a_waiter_keeps_its_place_and_is_granted_after_its_session_has_moved() {
    let ensemble = ensemble().await;
    let (rival, manager) = (client(&list(&ensemble, &[0])).await, client(&list(&ensemble, &[1])).await);
    let holder = take(&rival).await;
    let waiting = waiter(&manager, &ensemble).await;
    let last = waiter(&rival, &ensemble).await;
    move_to(&manager, &list(&ensemble, &[2])).await;
    server(&ensemble, 1).stop().await;
    holder.release().await.unwrap();
    let guard = within("the grant", waiting).await.unwrap().unwrap().unwrap();
    assert!(!last.is_finished());
    guard.release().await.unwrap();
    drop(within("the last grant", last).await.unwrap().unwrap().unwrap());
}

#[tokio::test]
async fn a_waiter_learns_of_a_grant_that_came_while_its_session_moved() {
    let ensemble = ensemble().await;
    let (rival, manager) = (client(&list(&ensemble, &[0])).await, client(&list(&ensemble, &[1])).await);
    let holder = take(&rival).await;
    let waiting = waiter(&manager, &ensemble).await;
    let arrival = server(&ensemble, 0).fault(When::connect().server(2), Fault::HoldRequest);
    let servers = list(&ensemble, &[2]);
    let moving = tokio::spawn({
        let manager = manager.clone();
        async move { manager.set_servers(&servers).await }
    });
    within("the second connection", arrival.hit()).await.unwrap();
    holder.release().await.unwrap();
    arrival.release();
    within("the move", moving).await.unwrap().unwrap().unwrap();
    drop(within("the grant", waiting).await.unwrap().unwrap().unwrap());
}

#[tokio::test]
async fn a_create_without_an_answer_at_the_move_is_found_out_and_leaves_one_node() {
    let ensemble = ensemble().await;
    let manager = client(&list(&ensemble, &[0])).await;
    take(&manager).await.release().await.unwrap();
    for (fault, server_after) in [(Fault::HoldReply, 1), (Fault::HoldRequest, 2)] {
        let create = server(&ensemble, 0).fault(When::create().path(&format!("{LOCK}/*")), fault);
        let mutex = Mutex::new(&manager, LOCK).unwrap();
        let taking = tokio::spawn(async move { mutex.acquire().await });
        within("the create", create.hit()).await.unwrap();
        move_to(&manager, &list(&ensemble, &[server_after])).await;
        create.release();
        let guard = within("the lock", taking).await.unwrap().unwrap().unwrap();
        let is_alone = server(&ensemble, 0).wait_until(|machine| contenders(machine) == 1);
        within("one node", is_alone).await.unwrap();
        assert!(guard.is_valid());
        guard.release().await.unwrap();
        move_to(&manager, &list(&ensemble, &[0])).await;
    }
}

#[tokio::test]
async fn a_write_without_an_answer_at_the_move_has_an_unknown_outcome() {
    let ensemble = ensemble().await;
    let manager = client(&list(&ensemble, &[0])).await;
    let create = server(&ensemble, 0).fault(When::create().path("/written"), Fault::HoldReply);
    let writing = tokio::spawn({
        let znodes = manager.znodes();
        async move { znodes.create("/written", "", CreateMode::Persistent).await }
    });
    within("the create", create.hit()).await.unwrap();
    move_to(&manager, &list(&ensemble, &[1])).await;
    match within("the write", writing).await.unwrap().unwrap() {
        Err(error) => assert!(error.outcome_unknown(), "{error}"),
        Ok(_) => assert!(manager.znodes().read("/written").await.unwrap().is_some()),
    }
}

#[tokio::test]
async fn a_session_moves_while_its_link_is_down() {
    let ensemble = ensemble().await;
    let manager = client(&list(&ensemble, &[0, 1])).await;
    let guard = take(&manager).await;
    server(&ensemble, 0).stop().await;
    server(&ensemble, 1).stop().await;
    becomes("the link is down", || matches!(manager.state(), State::Suspended(_))).await.unwrap();
    move_to(&manager, &list(&ensemble, &[2])).await;
    assert!(guard.is_valid());
    guard.release().await.unwrap();
}

#[tokio::test]
async fn servers_that_cannot_be_reached_are_an_error_and_the_next_ones_have_the_session() {
    let ensemble = ensemble().await;
    let manager = client(&list(&ensemble, &[0])).await.with_operation_timeout(SESSION / 2).unwrap();
    let guard = take(&manager).await;
    server(&ensemble, 1).stop().await;
    let error = within("the limit", manager.set_servers(&list(&ensemble, &[1]))).await.unwrap().unwrap_err();
    assert!(error.is_timeout() && error.to_string().contains(&list(&ensemble, &[1])), "{error}");
    assert!(matches!(manager.state(), State::Suspended(_)));
    move_to(&manager, &list(&ensemble, &[2, 0])).await;
    assert!(guard.is_valid());
    guard.release().await.unwrap();
}

#[tokio::test]
async fn the_last_of_several_lists_counts() {
    // Behind a request that is held, the server sees no later one of its client.
    for fault in [Fault::HoldRequest, Fault::Refuse(ErrorCode::RuntimeInconsistency)] {
        let ensemble = ensemble().await;
        let manager = client(&list(&ensemble, &[0])).await;
        let guard = take(&manager).await;
        let quorum = server(&ensemble, 0).fault(When::op(Op::Multi).server(1).always(), fault);
        let first = tokio::spawn({
            let (manager, servers) = (manager.clone(), list(&ensemble, &[1]));
            async move { manager.set_servers(&servers).await }
        });
        // The session is at the second server, and waits for its quorum.
        within("the first move", quorum.hit()).await.unwrap();
        move_to(&manager, &list(&ensemble, &[2])).await;
        within("the first call", first).await.unwrap().unwrap().unwrap();
        server(&ensemble, 0).stop().await;
        server(&ensemble, 1).stop().await;
        assert!(guard.is_valid());
        guard.release().await.unwrap();
    }
}

/// The client that carries the session on cannot say what the first one has seen. The test server lets no
/// session in that it cannot ask the others about; a deposed leader does.
#[tokio::test]
async fn a_session_sends_nothing_to_its_next_server_before_the_quorum_has_answered_there() {
    let ensemble = ensemble().await;
    let manager = client(&list(&ensemble, &[0])).await;
    manager.znodes().create("/written", "", CreateMode::Persistent).await.unwrap();
    let check = server(&ensemble, 0).fault(When::op(Op::Multi).server(2).path("/"), Fault::HoldRequest);
    let reads = When::op(Op::GetData).always();
    let reads = server(&ensemble, 0).fault(reads, Fault::DelayReply(Duration::ZERO));
    let moving = tokio::spawn({
        let (manager, servers) = (manager.clone(), list(&ensemble, &[2]));
        async move { manager.set_servers(&servers).await }
    });
    within("the check", check.hit()).await.unwrap();
    let reading = tokio::spawn({
        let znodes = manager.znodes();
        async move { read_until_answered(&znodes, "/written").await }
    });
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(matches!(manager.state(), State::Suspended(_)));
    assert_eq!((reads.hits(), moving.is_finished(), reading.is_finished()), (0, false, false));
    check.release();
    assert!(within("a read", reading).await.unwrap().unwrap());
    within("the move", moving).await.unwrap().unwrap().unwrap();
}

/// Whether the node exists.
async fn read_until_answered(znodes: &Znodes, path: &str) -> bool {
    loop {
        match znodes.read(path).await {
            Err(error) if error.is_transient() => {}
            read => return read.unwrap().is_some(),
        }
    }
}

#[tokio::test]
async fn at_another_ensemble_the_session_is_over_and_what_it_held_is_lost() {
    let (former, other) = (ensemble().await, ensemble().await);
    // Its transactions have greater numbers than those that the manager has seen.
    let at_other = client(&list(&other, &[0])).await;
    for number in 0..50 {
        at_other.znodes().create(format!("/other/{number}"), "", CreateMode::Persistent).await.unwrap();
    }
    // The session of the client has an id that the other ensemble has not given.
    let rival = client(&list(&former, &[0])).await;
    let manager = client(&list(&former, &[0])).await;
    let guard = take(&manager).await;
    let view = TreeView::new(&manager, "/tree").unwrap();
    within("the view", view.ready()).await.unwrap().unwrap();
    let next = waiter(&rival, &former).await;
    move_to(&manager, &list(&other, &[0, 1])).await;
    assert!(!guard.is_valid());
    within("the loss", guard.lost()).await.unwrap();
    assert!(!next.is_finished(), "the former ensemble keeps the nodes until the session timeout");
    let again = take(&manager).await;
    assert!(
        again.is_valid()
            && matches!(manager.state(), State::Connected(epoch) if epoch.to_string() == "epoch 2")
    );
    manager.znodes().create("/tree", "", CreateMode::Persistent).await.unwrap();
    let snapshot = within("the view", view.sync()).await.unwrap().unwrap();
    assert_eq!(snapshot.iter().count(), 1);
    server(&former, 0).advance_clock(LONG * 2);
    drop(within("the grant of the former ensemble", next).await.unwrap().unwrap().unwrap());
}

#[tokio::test]
async fn an_ensemble_whose_transactions_have_lower_numbers_grants_nothing() {
    let (former, other) = (ensemble().await, ensemble().await);
    let _first = client(&list(&former, &[0])).await;
    let manager = client(&list(&former, &[0])).await;
    for _ in 0..10 {
        take(&manager).await.release().await.unwrap();
    }
    move_to(&manager, &list(&other, &[0])).await;
    let acquire = Mutex::new(&manager, LOCK).unwrap();
    let error = within("an answer", acquire.acquire()).await.unwrap().unwrap_err();
    assert!(matches!(error, Error::ServersReset { .. }), "{error:?}");
}

#[tokio::test]
async fn the_same_servers_in_another_order_break_no_link() {
    let ensemble = ensemble().await;
    let manager = client(&list(&ensemble, &[0, 1])).await;
    let connects = server(&ensemble, 0).fault(When::connect().always(), Fault::DelayReply(Duration::ZERO));
    move_to(&manager, &list(&ensemble, &[1, 0, 1])).await;
    manager.znodes().read("/").await.unwrap();
    assert_eq!(connects.hits(), 0);
}

#[tokio::test]
async fn invalid_servers_are_refused_and_change_nothing() {
    let ensemble = ensemble().await;
    let manager = client(&list(&ensemble, &[0])).await;
    let connects = server(&ensemble, 0).fault(When::connect().always(), Fault::DelayReply(Duration::ZERO));
    for (servers, word) in [
        ("", "names no server"),
        ("a b", "bad address"),
        ("localhost:1/app", "chroot of this manager is /"),
        ("localhost:1;localhost:2", "commas"),
    ] {
        let error = manager.set_servers(servers).await.unwrap_err();
        assert!(matches!(error, Error::Config(_)), "{error:?}");
        assert!(error.to_string().contains(word), "{error}");
    }
    let chroot = client(&format!("{}/app", list(&ensemble, &[0]))).await;
    let error = chroot.set_servers(&list(&ensemble, &[1])).await.unwrap_err();
    assert!(matches!(error, Error::Config(ConfigError::Setting { name: "servers", .. })), "{error:?}");
    move_to(&chroot, &format!("{}/app", list(&ensemble, &[1]))).await;
    chroot.znodes().create("/node", "", CreateMode::Persistent).await.unwrap();
    assert!(manager.znodes().read("/app/node").await.unwrap().is_some());
    assert_eq!(connects.hits(), 2, "of the manager with a chroot");
}

#[tokio::test]
async fn once_a_shutdown_has_begun_the_servers_stay() {
    let ensemble = ensemble().await;
    let manager = client(&list(&ensemble, &[0])).await;
    let guard = take(&manager).await;
    let ending = tokio::spawn({
        let manager = manager.clone();
        async move { manager.shutdown_within(LONG).await }
    });
    within("the shutdown", manager.closing()).await.unwrap();
    let error = manager.set_servers(&list(&ensemble, &[1])).await.unwrap_err();
    assert!(matches!(error, Error::Closed), "{error:?}");
    guard.release().await.unwrap();
    assert_eq!(within("the end", ending).await.unwrap().unwrap().unwrap(), 0);
    let error = manager.set_servers(&list(&ensemble, &[1])).await.unwrap_err();
    assert!(matches!(error, Error::Closed), "{error:?}");
}

#[tokio::test]
async fn a_shutdown_during_a_move_closes_the_session() {
    let ensemble = ensemble().await;
    let manager = client(&list(&ensemble, &[0])).await;
    let _guard = take(&manager).await;
    let arrival = server(&ensemble, 0).fault(When::connect().server(1), Fault::HoldRequest);
    let moving = tokio::spawn({
        let (manager, servers) = (manager.clone(), list(&ensemble, &[1]));
        async move { manager.set_servers(&servers).await }
    });
    within("the second connection", arrival.hit()).await.unwrap();
    let ending = tokio::spawn(async move { manager.shutdown().await });
    let error = within("the call", moving).await.unwrap().unwrap().unwrap_err();
    assert!(matches!(error, Error::Closed), "{error:?}");
    arrival.release();
    within("the end", ending).await.unwrap().unwrap().unwrap();
    assert_eq!(server(&ensemble, 1).sessions(), Vec::<i64>::new());
}

#[tokio::test]
async fn holds_survive_moves_in_a_row_while_others_contend() {
    let ensemble = Arc::new(ensemble().await);
    let (rival, manager) = (client(&list(&ensemble, &[0])).await, client(&list(&ensemble, &[0])).await);
    let mut last = None;
    for round in 0..12 {
        let to = [&[1, 2][..], &[2], &[0, 1]][round % 3];
        let (first, second) = if round % 2 == 0 { (&manager, &rival) } else { (&rival, &manager) };
        let guard = take(first).await;
        let waiting = waiter(second, &ensemble).await;
        move_to(&manager, &list(&ensemble, to)).await;
        assert!(guard.is_valid() && !waiting.is_finished());
        let token = guard.fencing_token();
        assert!(last < Some(token));
        guard.release().await.unwrap();
        let next = within("the next", waiting).await.unwrap().unwrap().unwrap();
        assert!(token < next.fencing_token());
        last = Some(next.fencing_token());
        next.release().await.unwrap();
    }
}
