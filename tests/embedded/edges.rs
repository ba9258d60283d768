//! Servers that differ or fail in unusual ways: the end of the sequence, no containers, replaced sessions,
//! servers that are behind.

use std::sync::Arc;
use std::time::Duration;

use futures::future::ready;
use futures::{FutureExt, StreamExt};
use lockkeeper::error::LossReason;
use lockkeeper::manager::{State, Transition};
use lockkeeper::znodes::CreateMode;
use lockkeeper::{BootInstant, ConnectionManager, MultiLock, Mutex, MutexGuard, RwLock};
use lockkeeper_testserver::tree::Owner as NodeOwner;
use lockkeeper_testserver::{ErrorCode, Fault, Isolation, Op, TestEnsemble, TestServer, When};

use crate::limit::within;
use crate::oracle::Oracle;
use crate::server_fixture::{LOCK, ServerFixture, TICK, builder, queue_nodes, servers};

async fn make_directory(server_fixture: &ServerFixture) {
    Mutex::new(&server_fixture.rival, LOCK).unwrap().acquire().await.unwrap().release().await.unwrap();
}

/// `tasks_each` tasks of each client acquire the lock `rounds` times.
async fn contend(
    server_fixture: &ServerFixture,
    clients: &[ConnectionManager],
    tasks_each: usize,
    rounds: usize,
) {
    let mut tasks = Vec::new();
    for client in clients.iter().flat_map(|client| vec![client; tasks_each]) {
        let (mutex, oracle) = (Mutex::new(client, LOCK).unwrap(), Arc::clone(&server_fixture.oracle));
        tasks.push(tokio::spawn(async move {
            for _ in 0..rounds {
                let hold = oracle.enter("a contender", Box::new(mutex.acquire().await.unwrap()));
                tokio::task::yield_now().await;
                hold.release().await.unwrap().unwrap();
            }
        }));
    }
    for task in tasks {
        within("a grant for every task", task).await.unwrap().unwrap();
    }
    server_fixture.oracle.verdict().unwrap();
    server_fixture.queue_length_becomes(0).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_the_end_of_the_sequence_there_is_one_holder_at_a_time() {
    for is_ahead in [false, true] {
        for before in 0..6 {
            let server_fixture = ServerFixture::start().await.unwrap();
            // As long as the rival's session: no session ends in this test.
            let long =
                builder(&server_fixture.server.connect_string()).session_timeout(Duration::from_secs(30));
            let other = long.connect().await.unwrap();
            make_directory(&server_fixture).await;
            server_fixture.server.count_ahead(is_ahead);
            assert!(server_fixture.server.set_sequence(LOCK, i32::MAX - before));
            contend(&server_fixture, &[server_fixture.rival.clone(), other], 2, 3).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_containers_directories_are_persistent_and_the_lock_is_the_same() {
    for refusal in [ErrorCode::Unimplemented, ErrorCode::MarshallingError, ErrorCode::BadArguments] {
        let server_fixture = ServerFixture::start().await.unwrap();
        let old = server_fixture.server.fault(When::op(Op::CreateContainer).always(), Fault::Refuse(refusal));
        let other = builder(&server_fixture.server.connect_string()).session_timeout(Duration::from_secs(30));
        let other = other.connect().await.unwrap();
        contend(&server_fixture, &[server_fixture.rival.clone(), other], 2, 3).await;
        assert!(old.hits() > 0);
        let owner = server_fixture.server.inspect(|machine| machine.tree().node(LOCK).map(|node| node.owner));
        assert_eq!(owner, Some(NodeOwner::Nobody));
    }
}

/// As newer servers do where this client may not read: an answer without the permission shows that the node
/// exists.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_above_that_may_not_be_read_counts_as_existing() {
    let server_fixture = ServerFixture::start().await.unwrap();
    make_directory(&server_fixture).await;
    let hidden = When::op(Op::Exists).path("/locks").always();
    let hidden = server_fixture.server.fault(hidden, Fault::Refuse(ErrorCode::NoAuth));
    let mutex = Mutex::new(&server_fixture.rival, "/locks/another").unwrap();
    within("the lock", mutex.acquire()).await.unwrap().unwrap().release().await.unwrap();
    assert_eq!(hidden.hits(), 1);
}

/// The next grant, its instant, and whether the earlier guard told its loss by then. Asked at once, and not
/// compared with the instant at which another task was woken: on a busy machine that is late.
fn next_grant(
    manager: &ConnectionManager,
    earlier: &Arc<MutexGuard>,
) -> tokio::task::JoinHandle<(BootInstant, bool, MutexGuard)> {
    let (mutex, earlier) = (Mutex::new(manager, LOCK).unwrap(), Arc::clone(earlier));
    tokio::spawn(async move {
        let guard = mutex.acquire().await.unwrap();
        let is_told = earlier.lost().now_or_never().is_some();
        (BootInstant::now(), is_told, guard)
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_replaced_on_reconnect_is_lost_before_another_contender_is_granted() {
    for is_reset in [false, true] {
        let server_fixture = ServerFixture::start().await.unwrap();
        let actor = server_fixture.brief_actor().await.unwrap();
        let session = server_fixture.sessions_of_actor()[0];
        let guard = Arc::new(Mutex::new(&actor, LOCK).unwrap().acquire().await.unwrap());
        let next = next_grant(&server_fixture.rival, &guard);
        server_fixture.queue_length_becomes(2).await.unwrap();
        let swapped = server_fixture.server.fault(When::connect().session(session), Fault::SwapSession);
        server_fixture.server.reset_connections(is_reset);
        server_fixture.server.drop_connections();
        within("the swap", swapped.hit()).await.unwrap();
        let lost = within("the loss", guard.lost()).await.unwrap();
        assert!(
            matches!(lost.reason, LossReason::SessionReplaced | LossReason::LeaseRanOut),
            "{:?}",
            lost.reason
        );
        assert!(!guard.is_valid());
        let (granted_at, is_told, granted) = within("the next grant", next).await.unwrap().unwrap();
        assert!(guard.valid_until() < granted_at && is_told);
        assert!(granted.fencing_token() > guard.fencing_token());
        assert!(guard.txn().check("/locks", -1).commit().await.unwrap_err().is_lost());
        let guard = Arc::into_inner(guard).unwrap();
        assert!(guard.release().await.unwrap_err().is_lost());
        granted.release().await.unwrap();
        server_fixture.queue_length_becomes(0).await.unwrap();
        // The manager continues with a new session.
        Mutex::new(&actor, LOCK).unwrap().acquire().await.unwrap().release().await.unwrap();
    }
}

/// Without a node there is nothing to verify a connection by, so the owner of the next node tells.
#[tokio::test]
async fn a_session_replaced_while_it_had_no_node_is_lost_at_its_next_create() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let actor = builder(&server_fixture.server.connect_string()).session_timeout(Duration::from_secs(30));
    let actor = actor.connect().await.unwrap();
    let (session, before) = (server_fixture.sessions_of_actor()[0], actor.state());
    let swapped = server_fixture.server.fault(When::connect().session(session), Fault::SwapSession);
    server_fixture.server.drop_connections();
    within("the swap", swapped.hit()).await.unwrap();
    let guard = within("a grant", Mutex::new(&actor, LOCK).unwrap().acquire()).await.unwrap().unwrap();
    let after = actor.state();
    assert!(
        matches!(after, State::Connected(_)) && after != before,
        "granted by the node of another session"
    );
    guard.release().await.unwrap();
    server_fixture.queue_length_becomes(0).await.unwrap();
}

/// The answer to a transaction does not show who owns the nodes, and the connection breaks before a read
/// shows it. The next connection carries the session of the nodes, and not that of the manager.
#[tokio::test]
async fn a_node_whose_owner_was_not_seen_verifies_no_later_connection() {
    let server = servers().stat_in_multi(false).start().await.unwrap();
    let manager = builder(&server.connect_string()).session_timeout(Duration::from_secs(30));
    let manager = manager.connect().await.unwrap();
    let locks = ["/locks/a", "/locks/b"].map(|path| Mutex::new(&manager, path).unwrap());
    for lock in &locks {
        lock.acquire().await.unwrap().release().await.unwrap();
    }
    let session = server.sessions()[0];
    let swapped = server.fault(When::connect().session(session), Fault::SwapSession);
    server.drop_connections();
    within("the swap", swapped.hit()).await.unwrap();
    let unseen = server.fault(When::op(Op::Exists).path("/locks/*/*"), Fault::DropConnectionBefore);
    let several = MultiLock::builder().lock(&locks[0]).lock(&locks[1]).build().unwrap();
    let guard = within("a grant", several.acquire()).await.unwrap().unwrap();
    within("the owner is asked for", unseen.hit()).await.unwrap();
    // The lease was confirmed before the swap, and the session of the nodes lives longer than that.
    let lost = within("the loss", guard.lost()).await.unwrap();
    assert_eq!(lost.reason, LossReason::SessionReplaced);
}

/// The answer to a downgrade is lost, and the next connection carries another session. The client finds the
/// node that was created, but that says nothing about the session of the connection.
#[tokio::test]
async fn a_node_found_after_a_lost_answer_does_not_show_whose_session_a_connection_carries() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let actor = builder(&server_fixture.server.connect_string()).session_timeout(Duration::from_secs(2));
    let actor = actor.connect().await.unwrap();
    let session = server_fixture.sessions_of_actor()[0];
    let writing = RwLock::new(&actor, LOCK).unwrap().write().await.unwrap();
    let downgrade = When::op(Op::Multi).path("/locks/lock/*__READ__*").session(session);
    let lost = server_fixture.server.fault(downgrade, Fault::DropConnectionAfter);
    let swapped = server_fixture.server.fault(When::connect().session(session), Fault::SwapSession);
    let reading = writing.downgrade().await;
    assert!(lost.hits() == 1 && swapped.hits() == 1);
    server_fixture.queue_length_becomes(0).await.unwrap();
    let gone_at = BootInstant::now();
    // The hold is lost either before the answer of the downgrade, or now.
    if let Ok(reading) = reading {
        assert!(!reading.is_valid() && reading.valid_until() < gone_at, "valid without a session");
        let lost = within("the loss", reading.lost()).await.unwrap();
        assert!(matches!(lost.reason, LossReason::SessionReplaced | LossReason::LeaseRanOut), "{lost}");
    }
}

#[tokio::test]
async fn without_get_ephemerals_a_reconnect_ends_the_session() {
    // Without `getEphemerals` the client cannot verify the session of its connection.
    let server_fixture = ServerFixture::start().await.unwrap();
    let _unknown = server_fixture
        .server
        .fault(When::op(Op::GetEphemerals).always(), Fault::Refuse(ErrorCode::Unimplemented));
    let actor = server_fixture.brief_actor().await.unwrap();
    let guard = Mutex::new(&actor, LOCK).unwrap().acquire().await.unwrap();
    server_fixture.server.drop_connections();
    let lost = within("the loss", guard.lost()).await.unwrap();
    assert!(matches!(lost.reason, LossReason::SessionReplaced | LossReason::LeaseRanOut), "{lost}");
    server_fixture.queue_length_becomes(0).await.unwrap();
    Mutex::new(&actor, LOCK).unwrap().acquire().await.unwrap().release().await.unwrap();
}

/// Three servers. The holder connects to the last one only, the other client to the first two.
struct ThreeServers {
    ensemble: TestEnsemble,
    holder: ConnectionManager,
    other: ConnectionManager,
}

impl ThreeServers {
    async fn start() -> Self {
        let ensemble = servers()
            .tick(TICK)
            .session_timeouts(TICK * 2, Duration::from_secs(600))
            .relay_touches(true)
            .start_ensemble(3)
            .await
            .unwrap();
        let address = |index: usize| ensemble.server(index).unwrap().connect_string();
        let other = builder(&format!("{},{}", address(0), address(1)));
        let other = other.session_timeout(Duration::from_secs(30)).connect().await.unwrap();
        // No pause of a busy machine ends its session before the test cuts it off.
        let holder = builder(&address(2)).session_timeout(Duration::from_secs(4)).connect().await.unwrap();
        Self { ensemble, holder, other }
    }

    fn server(&self, index: usize) -> &TestServer {
        self.ensemble.server(index).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_at_a_server_that_is_behind_is_lost_before_another_contender_is_granted() {
    for isolation in [Isolation::Stale, Isolation::Deposed] {
        let servers = ThreeServers::start().await;
        let oracle = Arc::<Oracle>::default();
        let guard = Arc::new(Mutex::new(&servers.holder, LOCK).unwrap().acquire().await.unwrap());
        let next = next_grant(&servers.other, &guard);
        within(
            "both nodes in the queue",
            servers.server(0).wait_until(|machine| queue_nodes(machine).len() == 2),
        )
        .await
        .unwrap();
        servers.server(2).cut_off(isolation);
        // The server answers the holder's pings all the time.
        let lost = within("the loss", guard.lost()).await.unwrap();
        assert_eq!(lost.reason, LossReason::LeaseRanOut, "{isolation:?}");
        assert!(!guard.is_valid());
        let (granted_at, is_told, granted) = within("the next grant", next).await.unwrap().unwrap();
        assert!(guard.valid_until() < granted_at && is_told, "{isolation:?}");
        assert!(granted.fencing_token() > guard.fencing_token());
        drop(guard);
        let hold = oracle.enter("the next", Box::new(granted));
        // After the partition the client learns that its session has expired, and contends again at the end
        // of the queue.
        servers.server(2).heal();
        let mutex = Mutex::new(&servers.holder, LOCK).unwrap();
        let again = tokio::spawn(async move { mutex.acquire().await.unwrap() });
        within(
            "both nodes in the queue again",
            servers.server(0).wait_until(|machine| queue_nodes(machine).len() == 2),
        )
        .await
        .unwrap();
        hold.release().await.unwrap().unwrap();
        let again = oracle.enter("the first", Box::new(within("a grant", again).await.unwrap().unwrap()));
        again.release().await.unwrap().unwrap();
        oracle.verdict().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_deleted_by_hand_ends_the_hold_and_a_waiter_without_a_node_starts_over() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let actor = server_fixture.actor().await.unwrap();
    let mutex = Mutex::new(&actor, LOCK).unwrap();
    let guard = mutex.acquire().await.unwrap();
    let waiting = tokio::spawn({
        let mutex = mutex.clone();
        async move { mutex.acquire().await.unwrap() }
    });
    server_fixture.queue_length_becomes(2).await.unwrap();
    within("its watches", server_fixture.server.wait_until(|machine| machine.watch_count(0) == 2))
        .await
        .unwrap();
    let waiter =
        server_fixture.server.inspect(queue_nodes).into_iter().find(|path| *path != *guard.path()).unwrap();
    assert!(server_fixture.server.delete_node(&waiter));
    let is_anew = |path: &str| {
        let deleted = path.to_owned();
        server_fixture.server.wait_until(move |machine| {
            queue_nodes(machine).len() == 2 && !queue_nodes(machine).contains(&deleted)
        })
    };
    within("a new node", is_anew(&waiter)).await.unwrap();
    let path = guard.path().to_owned();
    assert!(server_fixture.server.delete_node(&path));
    let next = within("the next grant", waiting).await.unwrap().unwrap();
    let lost = within("the loss", guard.lost()).await.unwrap();
    assert_eq!(lost.reason, LossReason::NodeDeleted);
    assert!(guard.txn().check("/locks", -1).commit().await.unwrap_err().is_lost());
    assert!(guard.release().await.unwrap_err().is_lost());
    next.release().await.unwrap();
    server_fixture.queue_length_becomes(0).await.unwrap();
}

/// The server does not notice the crash: the lock is freed when the session expires.
#[tokio::test]
async fn a_crashed_holder_frees_its_lock_at_most_a_session_timeout_and_a_tick_later() {
    const TIMEOUT: Duration = Duration::from_secs(20);
    let server_fixture = ServerFixture::start().await.unwrap();
    let servers = server_fixture.server.connect_string();
    let process = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let holding = process.spawn({
        let servers = servers.clone();
        async move {
            let manager = builder(&servers).session_timeout(TIMEOUT).connect().await.unwrap();
            Mutex::new(&manager, LOCK).unwrap().acquire().await.unwrap()
        }
    });
    let held = holding.await.unwrap();
    let session = server_fixture.sessions_of_actor()[0];
    let other = builder(&servers).session_timeout(TIMEOUT * 3).connect().await.unwrap();
    let mutex = Mutex::new(&other, LOCK).unwrap();
    let waiting = tokio::spawn(async move { mutex.acquire().await.unwrap() });
    let watched = server_fixture.server.wait_until(|machine| machine.watch_count(0) >= 1);
    within("the waiter's watch", watched).await.unwrap();

    process.shutdown_background();
    std::mem::forget(held);
    let disconnected = server_fixture.server.wait_until(|machine| machine.client_count(0) == 2);
    within("the end of its connection", disconnected).await.unwrap();
    assert!(server_fixture.server.sessions().contains(&session), "the session was closed");
    server_fixture.server.advance_clock(TIMEOUT + TICK);
    assert!(!server_fixture.server.sessions().contains(&session), "it lives longer than promised");
    let next = within("the next grant", waiting).await.unwrap().unwrap();
    next.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_read_after_a_reconnect_shows_what_the_quorum_committed_also_at_a_deposed_leader() {
    let servers = ThreeServers::start().await;
    // A read behind a confirmation of the lease, or behind a verification of the session after a twentieth of
    // it, waits for the leader, too.
    let at_deposed = builder(&servers.server(2).connect_string()).session_timeout(Duration::from_secs(600));
    let at_deposed = at_deposed.lease_keep_alive(Duration::ZERO);
    let (reader, witness) =
        (at_deposed.clone().connect().await.unwrap(), at_deposed.connect().await.unwrap());
    let transitions = [reader.transitions(), witness.transitions()];
    servers.server(2).drop_connections();
    for transitions in transitions {
        let is_up = |transition: &Transition| matches!(transition.state, State::Connected(_));
        let back = async { transitions.skip_while(|of| ready(!is_up(of))).next().await };
        assert!(within("the client is back", back).await.unwrap().is_some());
    }
    assert_eq!(witness.znodes().read("/register").await.unwrap(), None, "its first read");
    servers.server(2).cut_off(Isolation::Deposed);
    servers.other.znodes().create("/register", "new", CreateMode::Persistent).await.unwrap();
    let answers_others = async {
        for _ in 0..100 {
            assert_eq!(witness.znodes().read("/register").await.unwrap(), None, "the past");
        }
        servers.server(2).heal();
    };
    let znodes = reader.znodes();
    let both = async { tokio::join!(znodes.read("/register"), answers_others) };
    let (read, ()) = within("a read", both).await.unwrap();
    assert_eq!(read.unwrap().unwrap().0, b"new");
}
