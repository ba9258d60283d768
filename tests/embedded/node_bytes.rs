//! The budget for the ephemeral nodes of a session: what counts, what is refused, and what a shutdown leaves.

use std::fmt::Debug;
use std::time::Duration;

use futures::future::{join_all, try_join_all};
use lockkeeper::discovery::Instance;
use lockkeeper::error::Refusal;
use lockkeeper::znodes::CreateMode;
use lockkeeper::{
    ConnectionManager, Counter, Discovery, DoubleBarrier, Error, Group, Mutex, OnceCell, RateLimiter,
    Registration, SharedValue,
};
use lockkeeper_test_recipes::{LOCKS, Target};
use lockkeeper_testserver::machine::Machine;
use lockkeeper_testserver::{ErrorCode, Fault, Op, TestServer, When};

use crate::limit::within;
use crate::server_fixture::{LOCK, ServerFixture, TICK, builder, servers};

/// The budget: for some contenders.
const BUDGET: usize = 2_048;

/// The session of a client that sees no fault. A registration that was refused tries again after as long.
const SESSION: Duration = Duration::from_secs(4);

async fn client(server: &TestServer, budget: usize) -> ConnectionManager {
    let builder = builder(&server.connect_string()).session_timeout(SESSION).node_bytes_max(budget);
    builder.connect().await.unwrap()
}

/// A node that leaves no room for another one.
fn filler() -> String {
    format!("/{}", "f".repeat(BUDGET - 5))
}

async fn fill(manager: &ConnectionManager) {
    let filled = async {
        // What was given up before is deleted in the background.
        while let Err(error) = manager.znodes().create(filler(), b"", CreateMode::Ephemeral).await {
            assert!(is_full(&error), "{error}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within("room for the whole budget", filled).await.unwrap();
}

async fn empty(manager: &ConnectionManager) {
    assert!(manager.znodes().delete(filler()).await.unwrap());
}

fn is_full(error: &Error) -> bool {
    // A recipe's own error has the error of the request as its cause.
    let text = error.to_string();
    let is_typed = matches!(error, Error::Refused { refusal: Refusal::SessionFull, .. } | Error::Recipe(_));
    is_typed && text.contains("ConnectionPool") && !text.contains("the server refused")
}

fn assert_full<T: Debug>(name: &str, result: Result<T, Error>) {
    let error = result.expect_err(name);
    assert!(is_full(&error), "{name}: {error}");
    assert!(!error.is_transient() && !error.outcome_unknown(), "{name}: {error}");
}

/// The ephemeral nodes of the newest session.
fn nodes(server: &TestServer) -> Vec<String> {
    server.inspect(|machine| {
        let newest = machine.sessions().into_iter().max().unwrap();
        machine.tree().ephemerals(newest).map(str::to_owned).collect()
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_lock_is_refused_beyond_the_budget_and_has_room_after_a_release() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture.server, BUDGET).await;
    for (name, adapter) in LOCKS {
        let target = || Target::new(&manager, &format!("/budget/{name}"));
        adapter.prepare(target()).await.unwrap();
        fill(&manager).await;
        let refused = within(name, adapter.acquire(target())).await.unwrap();
        assert_full(name, refused.map(drop));
        assert_eq!(nodes(&server_fixture.server), [filler()], "{name}: a node was created");
        empty(&manager).await;
        let granted = within(name, adapter.acquire(target())).await.unwrap();
        granted.unwrap_or_else(|error| panic!("{name}: {error}")).release().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_registrations_counters_and_other_nodes_are_refused_beyond_the_budget() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture.server, BUDGET).await;
    let znodes = manager.znodes();
    let barrier = DoubleBarrier::new(&manager, "/barrier", 1).unwrap();
    let counter = Counter::new(&manager, "/counter").unwrap();
    let value = SharedValue::new(&manager, "/value", String::new()).unwrap();
    let once = OnceCell::new(&manager, "/once").unwrap();
    let calls = RateLimiter::new(&manager, "/calls", 1_000, Duration::from_secs(1)).unwrap();
    let discovery = Discovery::new(&manager, "/services").unwrap();
    fill(&manager).await;
    assert_full("a node", znodes.create("/node", b"", CreateMode::Ephemeral).await);
    assert_full("a barrier", barrier.enter().await.map(drop));
    assert_full("a counter", counter.increment().await);
    assert_full("a value", value.set("x".to_owned()).await);
    assert_full("a cell", once.get_or_init(async || b"x".to_vec()).await);
    // The first start needs no contender.
    drop(calls.admit().await.unwrap());
    assert_full("a limiter", calls.admit().await.map(drop));
    let registration = Registration::register(&manager, "/registered", b"").unwrap();
    assert_full("a registration", within("it", registration.registered()).await.unwrap());
    let group = Group::new(&manager, "/group").unwrap();
    let membership = group.join("a", b"").unwrap();
    assert_full("a member", within("it", membership.registered()).await.unwrap());
    let instance = discovery.register(Instance::new("web", "localhost", 80)).unwrap();
    assert_full("an instance", within("it", instance.registered()).await.unwrap());
    znodes.create("/persistent", b"", CreateMode::Persistent).await.unwrap();
    assert_eq!(nodes(&server_fixture.server), [filler()]);

    empty(&manager).await;
    let registered = async {
        while registration.registered().await.is_err() || membership.registered().await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    within("the registrations", registered).await.unwrap();
    assert_eq!(counter.increment().await.unwrap(), 1);
    barrier.enter().await.unwrap().leave().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiters_count_and_a_wait_that_is_given_up_makes_room() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let held = Mutex::new(&server_fixture.rival, LOCK).unwrap().acquire().await.unwrap();
    let manager = client(&server_fixture.server, BUDGET).await;
    let mutex = Mutex::new(&manager, LOCK).unwrap();
    // Some fit, the others are refused, and none is granted.
    let node = format!("{LOCK}/_c_00000000-0000-0000-0000-000000000000-lock-0000000000").len() + 4;
    let mut waits: Vec<_> = (0..BUDGET / node + 3).map(|_| Box::pin(mutex.acquire())).collect();
    let refused = async {
        for _ in 0..3 {
            let (ended, index, _) = futures::future::select_all(&mut waits).await;
            assert_full("a waiter", ended.map(drop));
            drop(waits.remove(index));
        }
    };
    within("three refusals", refused).await.unwrap();
    server_fixture.queue_length_becomes(BUDGET / node + 1).await.unwrap();
    drop(waits);
    held.release().await.unwrap();
    fill(&manager).await;
}

/// The node of a create without an answer is found, or is deleted by the janitor, and counts until then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn creates_without_an_answer_count_once_and_are_given_back() {
    for fault in [Fault::DropConnectionAfter, Fault::DropConnectionBefore, Fault::Refuse(ErrorCode::NoAuth)] {
        let server_fixture = ServerFixture::start().await.unwrap();
        let manager = client(&server_fixture.server, BUDGET).await;
        let mutex = Mutex::new(&manager, LOCK).unwrap();
        mutex.acquire().await.unwrap().release().await.unwrap();
        for _ in 0..3 {
            let op = When::create().path("/locks/lock/*");
            let lost = server_fixture.server.fault(op, fault);
            let acquired = within("a grant", mutex.acquire()).await.unwrap();
            assert_eq!(lost.hits(), 1, "{fault:?}");
            if let Ok(guard) = acquired {
                guard.release().await.unwrap();
            }
        }
        fill(&manager).await;
    }
}

/// The answer to the create, and the search for it, wait: the node may exist, so it counts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_create_without_an_answer_counts_until_its_search_is_over() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture.server, BUDGET).await;
    let mutex = Mutex::new(&manager, LOCK).unwrap();
    mutex.acquire().await.unwrap().release().await.unwrap();
    let lost = server_fixture.server.fault(When::create().path("/locks/lock/*"), Fault::DropConnectionAfter);
    // Only the search syncs here.
    let search = server_fixture.server.fault(When::op(Op::Sync).path(LOCK), Fault::HoldReply);
    let acquiring = tokio::spawn(async move { mutex.acquire().await.unwrap().release().await });
    within("the lost answer", lost.hit()).await.unwrap();
    within("the search", search.hit()).await.unwrap();
    assert_full("a filler", manager.znodes().create(filler(), b"", CreateMode::Ephemeral).await);
    search.release();
    within("the release", acquiring).await.unwrap().unwrap().unwrap();
    fill(&manager).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_session_of_a_pool_has_a_budget_of_its_own() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let builder = builder(&server_fixture.server.connect_string()).session_timeout(SESSION * 5);
    let pool = builder.node_bytes_max(BUDGET).connect_pool(4).await.unwrap();
    let paths: Vec<String> = (0..40).map(|number| format!("/locks/{number}")).collect();
    let one = pool.for_path("/locks/0");
    let take = |manager: &ConnectionManager, path: &String| Mutex::new(manager, path.as_str()).unwrap();
    let alone = join_all(paths.iter().map(async |path| take(one, path).acquire().await)).await;
    assert!(alone.iter().any(|acquired| acquired.as_ref().is_err_and(is_full)));
    drop(alone);
    fill(one).await;
    empty(one).await;
    let spread = paths.iter().map(async |path| take(pool.for_path(path), path).acquire().await);
    let guards = within("all locks", try_join_all(spread)).await.unwrap().unwrap();
    assert_eq!(guards.len(), paths.len());
}

/// A record above the limit would stop the server for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shutdown_deletes_its_nodes_before_it_closes_a_session_with_a_large_record() {
    let server = servers()
        .tick(TICK)
        .session_timeouts(TICK * 2, Duration::from_secs(60))
        .close_record_max(80 * 1_024)
        .start()
        .await
        .unwrap();
    let builder = builder(&server.connect_string()).session_timeout(Duration::from_secs(30));
    let manager = builder.connect().await.unwrap();
    let long = "l".repeat(200);
    let mutexes = (0..500).map(|number| Mutex::new(&manager, format!("/locks/{long}-{number}")).unwrap());
    let mutexes: Vec<Mutex> = mutexes.collect();
    let held = within("the locks", try_join_all(mutexes.iter().map(Mutex::acquire))).await.unwrap().unwrap();
    let waiting = tokio::spawn({
        let mutex = mutexes[0].clone();
        async move { mutex.acquire().await.map(drop) }
    });
    let ephemerals = |machine: &Machine| machine.tree().ephemerals(machine.sessions()[0]).count();
    within("the waiter", server.wait_until(move |machine| ephemerals(machine) == 501)).await.unwrap();
    within("the shutdown", manager.shutdown()).await.unwrap().unwrap();
    assert!(waiting.await.unwrap().unwrap_err().is_closed());
    assert!(held.iter().all(|guard| !guard.is_valid()));
    assert!(server.is_running(), "the record of the close was too large");
    assert!(server.sessions().is_empty());
}

/// The other side of the test above: without the deletes, the server does not survive.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_of_these_tests_stops_for_ever_when_the_record_of_a_close_is_too_large() {
    let server = servers().close_record_max(1_000).start().await.unwrap();
    let manager = builder(&server.connect_string()).session_timeout(SESSION).connect().await.unwrap();
    manager.znodes().create(filler(), b"", CreateMode::Ephemeral).await.unwrap();
    let _ = manager.shutdown().await;
    assert!(!server.is_running());
    let _ = server.restart().await;
    assert!(!server.is_running());
}
