//! Servers that close the connection on a request, and answers without a meaning for the client: no storm of
//! connects or requests follows, and the other calls of the session are served.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::join_all;
use lockkeeper::config::RetryPolicy;
use lockkeeper::error::LossReason;
use lockkeeper::znodes::CreateMode;
use lockkeeper::{BootInstant, ConnectionManager, MultiLock, Mutex, Registration};
use lockkeeper_testserver::fault::{Passed, Subject, Transcript};
use lockkeeper_testserver::machine::Machine;
use lockkeeper_testserver::tree::Owner as NodeOwner;
use lockkeeper_testserver::{Builder, ErrorCode, Fault, Op, TestServer, When};

use crate::limit::within;
use crate::server_fixture::{LOCK, ServerFixture, TICK, builder, servers};

/// A session that no pause of a busy machine ends.
const LONG: Duration = Duration::from_secs(30);

/// The most connects until a request is known to be the cause: the last of them carries none any more.
const CONNECTS_MAX: usize = 4;

/// The most creates until the create is known to be the cause.
const CREATES_MAX: usize = 8;

fn server_builder() -> Builder {
    servers().tick(TICK).session_timeouts(TICK * 2, Duration::from_secs(60))
}

async fn connected(server: &TestServer, session: Duration) -> ConnectionManager {
    builder(&server.connect_string()).session_timeout(session).connect().await.unwrap()
}

/// The connects of this server's clients, for a new session or for one that they had.
fn connects(transcript: &Transcript, server: usize) -> usize {
    let of_server =
        |passed: &Passed| passed.subject == Subject::Request(Op::Connect) && passed.server == server;
    transcript.passed().into_iter().filter(of_server).count()
}

/// Until the verdict on this kind of request, the first server gets few connects, for new sessions and for
/// replaced ones together, and at most one for the next session after it.
fn expect_few_connects(transcript: &Transcript, op: Op) {
    let passed = transcript.passed();
    let is = |passed: &Passed, op| passed.subject == Subject::Request(op) && passed.server == 0;
    let last = passed.iter().rposition(|passed| is(passed, op)).unwrap_or_default();
    let before_last = passed.iter().take(last).filter(|passed| is(passed, Op::Connect)).count();
    assert!(before_last < CONNECTS_MAX, "{before_last} until the last {op:?}");
    assert!(connects(transcript, 0) <= CONNECTS_MAX + 1, "{}", connects(transcript, 0));
}

fn count(transcript: &Transcript, ops: &[Op]) -> usize {
    let of_ops = |subject| matches!(subject, Subject::Request(op) if ops.contains(&op));
    transcript.passed().into_iter().filter(|passed| of_ops(passed.subject)).count()
}

fn owner(server: &TestServer, path: &str) -> Option<NodeOwner> {
    server.inspect(|machine| machine.tree().node(path).map(|node| node.owner))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_broken_connection_leaves_containers_on_however_many_creates_it_carried() {
    const TASKS: u64 = 30;
    let server_fixture = ServerFixture::start().await.unwrap();
    let server = &server_fixture.server;
    let actor = connected(server, LONG).await;
    // Until a first answer, creates of containers are sent one by one.
    let first = Mutex::new(&actor, LOCK).unwrap().acquire().await.unwrap();
    first.release().await.unwrap();
    // The connection breaks when all creates are on their way, and none is answered.
    let create = When::op(Op::CreateContainer).path("/locks/*");
    let unanswered = server.fault(create.clone().times(TASKS - 1), Fault::DropReply);
    let broken = server.fault(create.nth(TASKS), Fault::DropConnectionBefore);
    let tasks = (0..TASKS).map(|number| {
        let mutex = Mutex::new(&actor, format!("/locks/order-{number}")).unwrap();
        async move { mutex.acquire().await.unwrap().release().await.unwrap() }
    });
    within("all locks", join_all(tasks)).await.unwrap();
    assert!(unanswered.hits() == TASKS - 1 && broken.hits() == 1);
    let later = Mutex::new(&actor, "/locks/later").unwrap();
    later.acquire().await.unwrap().release().await.unwrap();
    let tasks = (0..TASKS).map(|number| format!("/locks/order-{number}"));
    for path in tasks.chain(["/locks/later".to_owned()]) {
        assert_eq!(owner(server, &path), Some(NodeOwner::Container), "{path}");
    }
}

/// It keeps sessions over a reconnect.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_closes_the_connection_on_containers_gets_few_of_them() {
    expect_few_containers(server_builder().unknown([Op::CreateContainer])).await;
}

/// As ClickHouse Keeper before 26.7.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_closes_the_connection_on_containers_and_replaces_sessions_gets_few_of_them() {
    let unknown = [Op::GetEphemerals, Op::CreateContainer];
    expect_few_containers(server_builder().like_clickhouse().unknown(unknown)).await;
}

async fn expect_few_containers(server: Builder) {
    let server = server.start().await.unwrap();
    let transcript = server.transcript();
    let actor = connected(&server, LONG).await;
    let locks = (0..10).map(|number| {
        let mutex = Mutex::new(&actor, format!("/locks/order-{number}")).unwrap();
        // A guard of a session that the server has replaced is lost.
        async move { drop(mutex.acquire().await.unwrap().release().await) }
    });
    within("all locks", join_all(locks)).await.unwrap();
    expect_few_connects(&transcript, Op::CreateContainer);
    // The next session of the manager knows it.
    let asked = count(&transcript, &[Op::CreateContainer]);
    let later = Mutex::new(&actor, "/locks/later").unwrap();
    drop(within("a lock of a new name", later.acquire()).await.unwrap().unwrap().release().await);
    assert_eq!(count(&transcript, &[Op::CreateContainer]), asked);
    assert_eq!(owner(&server, "/locks/later"), Some(NodeOwner::Nobody));
}

/// A replaced session is noticed, and before another contender is granted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_cannot_show_whose_connection_it_is_and_replaces_sessions_gets_few_connects() {
    let ensemble = server_builder().like_clickhouse().start_ensemble(2).await.unwrap();
    let [server, other] = ensemble.servers() else { panic!("{ensemble:?}") };
    let (actor, rival) = (connected(server, Duration::from_secs(10)).await, connected(other, LONG).await);
    // More nodes of the session: each of them may verify a connection.
    let registration = Registration::register(&actor, "/registered", "here").unwrap();
    within("the registration", registration.registered()).await.unwrap().unwrap();
    let second = Mutex::new(&actor, "/locks/second").unwrap().acquire().await.unwrap();
    let guard = Arc::new(Mutex::new(&actor, LOCK).unwrap().acquire().await.unwrap());
    let next = tokio::spawn({
        let (mutex, earlier) = (Mutex::new(&rival, LOCK).unwrap(), Arc::clone(&guard));
        async move {
            let guard = mutex.acquire().await.unwrap();
            (BootInstant::now(), earlier.lost().now_or_never().is_some(), guard)
        }
    });
    let is_queued =
        |machine: &Machine| machine.tree().node(LOCK).is_some_and(|node| node.children.len() == 2);
    within("both nodes in the queue", server.wait_until(is_queued)).await.unwrap();
    let transcript = server.transcript();
    server.drop_connections();
    let lost = within("the loss", guard.lost()).await.unwrap();
    assert_eq!(lost.reason, LossReason::SessionReplaced);
    assert!(!guard.is_valid());
    within("the other loss", second.lost()).await.unwrap();
    let (granted_at, is_told, granted) = within("the next grant", next).await.unwrap().unwrap();
    assert!(guard.valid_until() < granted_at && is_told);
    assert!(granted.fencing_token() > guard.fencing_token());
    granted.release().await.unwrap();
    // The manager goes on with a new session, and so does the registration.
    let again = Mutex::new(&actor, LOCK).unwrap();
    within("a grant", again.acquire()).await.unwrap().unwrap().release().await.unwrap();
    expect_few_connects(&transcript, Op::GetEphemerals);
}

/// Without a guard only the registration asks whose connection it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_registration_alone_makes_no_storm_of_connects_either() {
    let server = server_builder().like_clickhouse().start().await.unwrap();
    let actor = connected(&server, Duration::from_secs(10)).await;
    let registration = Registration::register(&actor, "/registered", "here").unwrap();
    within("the registration", registration.registered()).await.unwrap().unwrap();
    let session = server.sessions()[0];
    let transcript = server.transcript();
    server.drop_connections();
    let owned = server.wait_until(|machine| {
        let owner = machine.tree().node("/registered").map(|node| node.owner);
        owner.is_some_and(|owner| owner != NodeOwner::Session(session))
    });
    within("the node of a session that lives", owned).await.unwrap();
    expect_few_connects(&transcript, Op::GetEphemerals);
}

/// Its `jute.maxbuffer` is lower than the largest request that this library sends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_create_above_the_limit_of_the_server_ends_with_an_error_and_starves_no_neighbour() {
    let server = server_builder().max_request(50_000).start().await.unwrap();
    // With pauses much longer than a round trip, no neighbour is in flight each time.
    let actor = builder(&server.connect_string()).session_timeout(LONG).retry(RetryPolicy::default());
    let actor = actor.connect().await.unwrap();
    let transcript = server.transcript();
    let large = Mutex::new(&actor, "/locks/large").unwrap().with_node_data(vec![b'x'; 60_000]);
    let small = Mutex::new(&actor, LOCK).unwrap();
    let ended = AtomicBool::new(false);
    let neighbour = async {
        let mut grants = 0;
        while grants < 3 || !ended.load(Ordering::Relaxed) {
            drop(small.acquire().await.unwrap().release().await);
            grants += 1;
        }
    };
    let failed = async {
        let error = large.acquire().await.unwrap_err();
        ended.store(true, Ordering::Relaxed);
        error
    };
    let (error, ()) = within("the error", async { tokio::join!(failed, neighbour) }).await.unwrap();
    assert!(error.to_string().contains("jute.maxbuffer"), "{error}");
    assert!(!error.is_transient() && !error.is_timeout(), "{error:?}");
    let both = MultiLock::builder().lock(&large).lock(&small).atomic().build().unwrap();
    let error = within("the error", both.acquire()).await.unwrap().unwrap_err();
    assert!(error.to_string().contains("jute.maxbuffer"), "{error}");
    assert!(connects(&transcript, 0) <= 2 * CREATES_MAX, "{}", connects(&transcript, 0));
}

/// A server with local sessions, which own no ephemeral nodes, answers -120.
#[tokio::test]
async fn a_definite_answer_with_an_unknown_code_ends_the_call_and_is_said() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let server = &server_fixture.server;
    let first = Mutex::new(&server_fixture.rival, LOCK).unwrap().acquire().await.unwrap();
    first.release().await.unwrap();
    let actor = connected(server, LONG).await;
    let local = When::ops([Op::Create2, Op::Multi]).path("/locks/**").always();
    let local = server.fault(local, Fault::Refuse(ErrorCode::Other(-120)));
    let mutex = Mutex::new(&actor, LOCK).unwrap();
    let error = within("the error", mutex.acquire()).await.unwrap().unwrap_err();
    assert!(error.to_string().contains("-120"), "{error}");
    assert!(!error.outcome_unknown() && !error.is_transient(), "{error:?}");
    assert_eq!(local.hits(), 1);
    let error = actor.znodes().create("/locks/node", "", CreateMode::Ephemeral).await;
    let error = error.unwrap_err();
    assert!(error.to_string().contains("-120") && !error.outcome_unknown(), "{error}");
}

/// A code of the system's range does not say that nothing was applied: a server that cannot reach its quorum
/// in time answers so.
#[tokio::test]
async fn an_answer_that_says_nothing_about_the_write_leaves_it_unknown_and_ends_the_call() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let server = &server_fixture.server;
    let first = Mutex::new(&server_fixture.rival, LOCK).unwrap().acquire().await.unwrap();
    first.release().await.unwrap();
    let actor = connected(server, LONG).await;
    let local = When::op(Op::Create2).path("/locks/**").always();
    let local = server.fault(local, Fault::Refuse(ErrorCode::Other(-7)));
    let mutex = Mutex::new(&actor, LOCK).unwrap();
    let error = within("the error", mutex.acquire()).await.unwrap().unwrap_err();
    assert!(error.to_string().contains("-7"), "{error}");
    assert!(local.hits() <= CREATES_MAX as u64);
    let error = actor.znodes().create("/locks/node", "", CreateMode::Ephemeral).await;
    assert!(error.unwrap_err().outcome_unknown());
}
