//! Faults between a semaphore's list of the leases and its transaction.

use std::time::Duration;

use futures::future::join_all;
use futures::poll;
use lockkeeper::locks::SharedLimit;
use lockkeeper::znodes::CreateMode;
use lockkeeper::{ConnectionManager, MultiLock, Mutex, Semaphore, ZnodePath};
use lockkeeper_testserver::{Fault, Op, When};

use super::cut_off;
use crate::limit::within;
use crate::server_fixture::{ServerFixture, children};

const PERMITS: &str = "/permits";
const QUEUE: &str = "/permits/locks";
const LEASES: &str = "/permits/leases";

fn semaphore(manager: &ConnectionManager) -> Semaphore {
    Semaphore::new(manager, PERMITS, 1).unwrap()
}

/// The answer to the transaction is lost, and its leases are found over another connection than the one that
/// carried the list of the leases. A lease that this list does not show simulates a server that is behind.
#[tokio::test]
async fn permits_taken_over_another_connection_than_their_list_are_listed_again() {
    let server_fixture = ServerFixture::start().await.unwrap();
    semaphore(&server_fixture.rival).acquire().await.unwrap().release().await.unwrap();
    let actor = server_fixture.actor().await.unwrap();
    let session = server_fixture.sessions_of_actor()[0];
    let taking = When::op(Op::Multi).path("/permits/leases/*").session(session);
    let taking = server_fixture.server.fault(taking, Fault::HoldReply);
    let acquiring = tokio::spawn({
        let semaphore = semaphore(&actor);
        async move { semaphore.acquire().await.unwrap() }
    });
    within("the transaction", taking.hit()).await.unwrap();
    let unseen = format!("{LEASES}/unseen-lease-0000000001");
    server_fixture.rival.znodes().create(&unseen, b"", CreateMode::Persistent).await.unwrap();
    let out = |leases: usize, queue_nodes: usize| {
        server_fixture.server.wait_until(move |machine| {
            children(machine, LEASES).len() == leases && children(machine, QUEUE).len() == queue_nodes
        })
    };
    within("a permit too many is granted", out(2, 0)).await.unwrap();
    server_fixture.server.drop_connections();
    within("the lease too many is deleted, and the contender waits", out(1, 1)).await.unwrap();
    assert!(!acquiring.is_finished(), "a permit too many is granted");
    server_fixture.rival.znodes().delete(&unseen).await.unwrap();
    within("a permit", acquiring).await.unwrap().unwrap().release().await.unwrap();
}

/// The predecessor takes the permit between the next contender's create and the processing of the answer.
#[tokio::test]
async fn leases_listed_while_another_contender_was_ahead_are_listed_again() {
    const DOOR: &str = "/door";
    let server_fixture = ServerFixture::start().await.unwrap();
    let session = server_fixture.server.sessions()[0];
    let semaphore = semaphore(&server_fixture.rival);
    // After so many acquires the client grants by sequence numbers.
    for _ in 0..8 {
        semaphore.acquire().await.unwrap().release().await.unwrap();
    }
    server_fixture.round_trip_of_rival().await.unwrap();
    let closed = Mutex::new(&server_fixture.actor().await.unwrap(), DOOR).unwrap().acquire().await.unwrap();
    let both = MultiLock::builder()
        .lock(&semaphore.permits(1))
        .lock(&Mutex::new(&server_fixture.rival, DOOR).unwrap());
    let both = both.atomic().build().unwrap();
    let taking = tokio::spawn(async move { both.acquire().await.unwrap() });
    let queue_nodes = |count: usize| {
        server_fixture.server.wait_until(move |machine| {
            (children(machine, QUEUE).len(), children(machine, DOOR).len()) == (count, 2)
        })
    };
    within("a contender that waits for its other lock", queue_nodes(1)).await.unwrap();
    let mut next = Box::pin(semaphore.acquire());
    assert!(poll!(&mut next).is_pending());
    within("the next contender behind it", queue_nodes(2)).await.unwrap();
    closed.release().await.unwrap();
    let first = within("both locks", taking).await.unwrap().unwrap();
    let list = When::op(Op::GetChildren2).path(LEASES).session(session);
    let list = server_fixture.server.fault(list, Fault::DelayRequest(Duration::ZERO));
    tokio::select! {
        _ = &mut next => panic!("a permit too many is granted"),
        listed = within("a list of the leases", list.hit()) => listed.unwrap(),
    }
    first.release().await.unwrap();
    within("a permit", next).await.unwrap().unwrap().release().await.unwrap();
}

/// A Curator client whose node in the queue ended with its session: the client creates its lease all the
/// same, in its next session, and holds the permit if its list afterwards has no more leases than the limit.
async fn curator_makes_a_lease(server_fixture: &ServerFixture) -> (ZnodePath, usize) {
    let lease = format!("{LEASES}/_c_6f9619ff-8b86-4d11-b42d-00cf4fc964ff-lease-");
    server_fixture.rival.znodes().create(&lease, b"10.0.0.9", CreateMode::EphemeralSequential).await.unwrap();
    let listed = server_fixture.server.inspect(|machine| children(machine, LEASES));
    let own = listed.iter().find(|name| name.starts_with("_c_6f9619ff")).unwrap();
    (format!("{LEASES}/{own}").parse().unwrap(), listed.len())
}

/// A list of the leases is read before Curator's lease is created, and its answer is late.
async fn nothing_is_granted_beside_curators_lease(
    server_fixture: &ServerFixture,
    actor: ConnectionManager,
    acquiring: impl Future<Output = ()> + Send + 'static,
) {
    let session = server_fixture.sessions_of_actor()[0];
    let list = server_fixture
        .server
        .fault(When::op(Op::GetChildren2).path(LEASES).session(session), Fault::HoldReply);
    let acquiring = tokio::spawn(acquiring);
    within("the list", list.hit()).await.unwrap();
    let (lease, listed) = curator_makes_a_lease(server_fixture).await;
    assert_eq!(listed, 1, "Curator holds the permit");
    list.release();
    let settled = server_fixture.server.wait_until(|machine| {
        // The head of the queue has deleted its own lease, and waits for the end of Curator's.
        children(machine, LEASES).len() == 1
            && children(machine, QUEUE).len() == 1
            && machine.watch_count(0) >= 1
    });
    within("a wait for the permit", settled).await.unwrap();
    assert!(!acquiring.is_finished(), "a permit too many is granted");
    server_fixture.rival.znodes().delete(&lease).await.unwrap();
    within("the permit", acquiring).await.unwrap().unwrap();
    drop(actor);
}

#[tokio::test]
async fn no_permit_is_granted_beside_a_lease_that_curator_made_without_the_queue() {
    for is_recorded in [false, true] {
        let server_fixture = ServerFixture::start().await.unwrap();
        let actor = server_fixture.actor().await.unwrap();
        let semaphore = semaphore(&actor);
        if is_recorded {
            semaphore.acquire().await.unwrap().release().await.unwrap();
        } else {
            let znodes = server_fixture.rival.znodes();
            for path in [PERMITS, LEASES] {
                znodes.create(path, b"", CreateMode::Persistent).await.unwrap();
            }
        }
        let acquiring = async move { semaphore.acquire().await.unwrap().release().await.unwrap() };
        nothing_is_granted_beside_curators_lease(&server_fixture, actor, acquiring).await;
    }
}

#[tokio::test]
async fn no_mutex_in_semaphore_layout_is_granted_beside_a_lease_that_curator_made_without_the_queue() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let actor = server_fixture.actor().await.unwrap();
    let mutex = Mutex::in_semaphore_layout(&actor, PERMITS).unwrap();
    mutex.acquire().await.unwrap().release().await.unwrap();
    let acquiring = async move { mutex.acquire().await.unwrap().release().await.unwrap() };
    nothing_is_granted_beside_curators_lease(&server_fixture, actor, acquiring).await;
}

#[tokio::test]
async fn no_permit_of_a_shared_limit_is_granted_beside_a_lease_that_curator_made_without_the_queue() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let actor = server_fixture.actor().await.unwrap();
    let limit = SharedLimit::new(&actor, "/limit").unwrap();
    limit.set(1).await.unwrap();
    let semaphore = Semaphore::new_shared(&actor, PERMITS, &limit).unwrap();
    semaphore.acquire().await.unwrap().release().await.unwrap();
    let acquiring = async move { semaphore.acquire().await.unwrap().release().await.unwrap() };
    nothing_is_granted_beside_curators_lease(&server_fixture, actor, acquiring).await;
}

/// A contender that gets the number of permits in use from its predecessor lists no leases.
#[tokio::test]
async fn no_permit_is_handed_over_in_memory_beside_a_lease_that_curator_made_without_the_queue() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let actor = server_fixture.actor().await.unwrap();
    let semaphore = Semaphore::new(&actor, PERMITS, 2).unwrap();
    semaphore.acquire().await.unwrap().release().await.unwrap();
    let session = server_fixture.sessions_of_actor()[0];
    let both = semaphore.acquire_many(2).await.unwrap();
    let mut waiting = Vec::new();
    for position in 1..=2 {
        let semaphore = semaphore.clone();
        waiting.push(tokio::spawn(async move { semaphore.acquire().await.unwrap() }));
        let queue_nodes =
            server_fixture.server.wait_until(move |machine| children(machine, QUEUE).len() == position);
        within("a node in the queue", queue_nodes).await.unwrap();
    }
    // The first contender's exchange, and then the second one's, which rests on the number from the first.
    let second = When::op(Op::Multi).path("/permits/leases/*-lease-").session(session).nth(2);
    let exchange = server_fixture.server.fault(second, Fault::HoldRequest);
    both.release().await.unwrap();
    within("the exchange of the second contender", exchange.hit()).await.unwrap();
    let (lease, listed) = curator_makes_a_lease(&server_fixture).await;
    assert_eq!(listed, 2, "Curator holds the second permit");
    exchange.release();
    let settled = server_fixture.server.wait_until(|machine| {
        children(machine, LEASES).len() == 2
            && children(machine, QUEUE).len() == 1
            && machine.watch_count(0) >= 1
    });
    within("a wait for the permit", settled).await.unwrap();
    let second = waiting.pop().unwrap();
    assert!(!second.is_finished(), "a permit too many is granted");
    server_fixture.rival.znodes().delete(&lease).await.unwrap();
    let second = within("the permit", second).await.unwrap().unwrap();
    let first = within("the first permit", waiting.pop().unwrap()).await.unwrap().unwrap();
    assert!(first.is_valid() && second.is_valid());
    first.release().await.unwrap();
    second.release().await.unwrap();
}

/// Curator's lease is created after ours, so Curator waits by its own rule: if ours were deleted, no client
/// would hold the permit.
#[tokio::test]
async fn a_permit_is_kept_when_curator_makes_a_lease_behind_it() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let actor = server_fixture.actor().await.unwrap();
    let semaphore = semaphore(&actor);
    let session = server_fixture.sessions_of_actor()[0];
    // Without a permit count in its data: the directory was created by a client that writes none.
    for path in [PERMITS, LEASES] {
        let data: &[u8] = if path == LEASES { b"10.0.0.9" } else { b"" };
        server_fixture.rival.znodes().create(path, data, CreateMode::Persistent).await.unwrap();
    }
    let (lease, _) = curator_makes_a_lease(&server_fixture).await;
    server_fixture.rival.znodes().delete(&lease).await.unwrap();
    let exchange = When::op(Op::Multi).path("/permits/leases/*-lease-").session(session);
    let exchange = server_fixture.server.fault(exchange, Fault::HoldRequest);
    let acquiring = tokio::spawn(async move { semaphore.acquire().await.unwrap() });
    within("the exchange", exchange.hit()).await.unwrap();
    let again = When::op(Op::GetChildren2).path(LEASES).session(session);
    let again = server_fixture.server.fault(again, Fault::HoldRequest);
    exchange.release();
    within("the list after the exchange", again.hit()).await.unwrap();
    let (lease, listed) = curator_makes_a_lease(&server_fixture).await;
    assert_eq!(listed, 2, "Curator waits");
    again.release();
    let held = within("the permit", acquiring).await.unwrap().unwrap();
    assert!(held.is_valid());
    assert_eq!(server_fixture.server.inspect(|machine| children(machine, LEASES).len()), 2);
    held.release().await.unwrap();
    server_fixture.rival.znodes().delete(&lease).await.unwrap();
}

/// An event makes the contender the head while the link is down. The semaphore sends the reads of the acquire
/// then, and their answers arrive over the next connection, which carries both the reads and the transaction.
#[tokio::test]
async fn an_acquire_whose_reads_are_sent_without_a_link_takes_its_permit_once() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let server = &server_fixture.server;
    let many = |manager| Semaphore::new(manager, PERMITS, 100).unwrap();
    let (rival, actor) = (many(&server_fixture.rival), server_fixture.actor().await.unwrap());
    let (made, session) = (server_fixture.server.sessions()[0], many(&actor));
    rival.acquire().await.unwrap().release().await.unwrap();
    let leases = || server.inspect(|machine| machine.tree().node(LEASES).map(|node| node.created_children));
    let mut expected = leases().unwrap();
    for _ in 0..4 {
        let first =
            server.fault(When::op(Op::Multi).path("/permits/leases/*").session(made), Fault::HoldRequest);
        let taking = tokio::spawn({
            let rival = rival.clone();
            async move { rival.acquire().await.unwrap().release().await.unwrap() }
        });
        within("the transaction of the rival", first.hit()).await.unwrap();
        let mut acquiring = Box::pin(session.acquire());
        let waits = server.wait_until(|machine| machine.watch_count(0) >= 1);
        tokio::select! {
            _ = &mut acquiring => panic!("granted before the rival"),
            waits = within("a watch on the node of the rival", waits) => waits.unwrap(),
        }
        first.release();
        within("the permit of the rival", taking).await.unwrap().unwrap();
        // The event arrives before this answer.
        actor.znodes().read("/zookeeper").await.unwrap();
        let away = cut_off(&server_fixture, &actor).await;
        assert!(poll!(&mut acquiring).is_pending(), "there is no link");
        drop(away);
        within("a permit", acquiring).await.unwrap().unwrap().release().await.unwrap();
        expected += 2;
        assert_eq!(leases(), Some(expected), "a lease was made and given back");
    }
}

#[tokio::test]
async fn tries_of_one_process_are_no_contenders_of_each_other() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let actor = server_fixture.actor().await.unwrap();
    let semaphores: Vec<Semaphore> = (0..20).map(|_| Semaphore::new(&actor, PERMITS, 15).unwrap()).collect();
    let tries = join_all(semaphores.iter().map(Semaphore::try_acquire)).await;
    let taken = tries.iter().filter(|tried| tried.as_ref().unwrap().is_some()).count();
    assert_eq!(taken, 15);
    // A try that is dropped leaves the turn to the next one.
    drop(tries);
    let mut first = Box::pin(semaphores[0].try_acquire());
    assert!(poll!(&mut first).is_pending());
    drop(first);
    assert!(within("a try", semaphores[1].try_acquire()).await.unwrap().is_ok());
}
