//! Made circles.

use std::time::{Duration, SystemTime};

use lockkeeper::inspect::{Certainty, Deadlocks, Identity, Role};
use lockkeeper::{Mutex, Owner, Revoker};
use lockkeeper_tests::Take::{self, AtOnce, Both, Lock, Permit, Read, Write};
use lockkeeper_tests::{Circle, Timing};

use super::Fixture;

/// Starts the owners, and returns how many of them the found circle has. `None` if none is found.
async fn found(rows: &[(Take, Take)], waiting: usize) -> Option<usize> {
    let fixture = Fixture::start(rows.len()).await;
    let _circle = Circle::start(&fixture.managers, rows);
    let locks = fixture.waiting(waiting).await;
    let deadlocks = fixture.deadlocks(&locks).await;
    let found = deadlocks.found().next()?;
    assert!(deadlocks.to_string().contains("wait for each other"), "{deadlocks}");
    Some(found.edges().len())
}

#[tokio::test]
async fn a_circle_of_two_mutexes_is_found() {
    assert_eq!(
        found(&[(Lock("/locks/a"), Lock("/locks/b")), (Lock("/locks/b"), Lock("/locks/a"))], 2).await,
        Some(2)
    );
}

#[tokio::test]
async fn a_circle_of_five_kinds_is_found() {
    let rows = [
        (Lock("/locks/a"), Write("/locks/b")),
        (Read("/locks/b"), Permit("/locks/c", 1)),
        (Permit("/locks/c", 1), Both("/locks/d", "/locks/e")),
        (Lock("/locks/e"), Read("/locks/f")),
        (Write("/locks/f"), Lock("/locks/a")),
    ];
    assert_eq!(found(&rows, 5).await, Some(5));
}

#[tokio::test]
async fn a_circle_with_a_multi_lock_of_one_transaction_is_found() {
    let rows = [(Lock("/locks/a"), AtOnce("/locks/b", "/locks/c")), (Lock("/locks/c"), Lock("/locks/a"))];
    assert_eq!(found(&rows, 2).await, Some(2));
}

#[tokio::test]
async fn a_circle_through_a_semaphore_with_a_free_holder_is_none() {
    let rows = [
        (Lock("/locks/a"), Permit("/locks/c", 2)),
        (Permit("/locks/c", 2), Lock("/locks/a")),
        // Waits for a lock that the test holds, and so for nobody of the circle.
        (Permit("/locks/c", 2), Lock("/locks/z")),
    ];
    let fixture = Fixture::start(rows.len()).await;
    let held = Mutex::new(&fixture.observer, "/locks/z").unwrap().acquire().await.unwrap();
    let _circle = Circle::start(&fixture.managers, &rows);
    let locks = fixture.waiting(3).await;
    let deadlocks = fixture.deadlocks(&locks).await;
    assert_eq!(deadlocks.all(), [], "{deadlocks}");
    held.release().await.unwrap();
}

#[tokio::test]
async fn readers_that_wait_for_readers_are_no_circle() {
    let fixture = Fixture::start(2).await;
    // Each reads what the other one reads, so both are served.
    let rows = [(Read("/locks/a"), Read("/locks/b")), (Read("/locks/b"), Read("/locks/a"))];
    let mut circle = Circle::start(&fixture.managers, &rows);
    circle.next_served().await.unwrap();
    circle.next_served().await.unwrap();
}

#[tokio::test]
async fn without_owners_a_circle_is_only_possible() {
    let fixture = Fixture::start(2).await;
    let [one, other] = &fixture.managers[..] else { panic!("two clients") };
    let lock = |manager, path: &str| Mutex::new(manager, path).unwrap();
    let _first = lock(one, "/locks/a").acquire().await.unwrap();
    let _second = lock(other, "/locks/b").acquire().await.unwrap();
    let (a, b) = (lock(other, "/locks/a"), lock(one, "/locks/b"));
    let _waiters = [
        tokio::spawn(async move { a.acquire().await.map(drop) }),
        tokio::spawn(async move { b.acquire().await.map(drop) }),
    ];
    let locks = fixture.waiting(2).await;
    let deadlocks = fixture.deadlocks(&locks).await;
    assert_eq!((deadlocks.found().count(), deadlocks.all().len()), (0, 1), "{deadlocks}");
    assert_eq!(deadlocks.all()[0].certainty(), Certainty::Possible);
    assert!(deadlocks.to_string().starts_with("possible deadlock: 2 sessions"), "{deadlocks}");
}

#[tokio::test]
async fn the_report_names_the_waiters_behind_and_the_holder_whose_end_serves_all() {
    let fixture = Fixture::start(2).await;
    let rows = [(Lock("/locks/a"), Lock("/locks/b")), (Lock("/locks/b"), Lock("/locks/a"))];
    let mut circle = Circle::start(&fixture.managers, &rows);
    fixture.waiting(2).await;
    let behind = Mutex::new(&fixture.observer, "/locks/a").unwrap();
    let behind = tokio::spawn(async move { behind.acquire().await.map(drop) });
    let locks = fixture.waiting(3).await;
    let deadlocks = fixture.deadlocks(&locks).await;
    let deadlock = deadlocks.found().next().unwrap();
    assert_eq!(deadlock.waiting_behind(), [("/locks/a".parse().unwrap(), 1)]);
    let report = deadlock.to_string();
    for part in [
        "owner=owner 0",
        "owner=owner 1",
        "also waiting for them: 1 on /locks/a",
        "as one MultiLock",
        "never",
    ] {
        assert!(report.contains(part), "{part}: {report}");
    }
    // To take the hold of one of them away serves the others.
    let holder = deadlock.closed_by().unwrap().blockers()[0].clone();
    assert_eq!(holder.role(), Role::Holder);
    Revoker::new(&fixture.observer).force_release([&holder]).await.unwrap();
    circle.next_served().await.unwrap();
    behind.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_deadlock_that_ended_between_the_looks_is_not_reported() {
    let fixture = Fixture::start(2).await;
    let rows = [(Lock("/locks/a"), Lock("/locks/b")), (Lock("/locks/b"), Lock("/locks/a"))];
    let circle = Circle::start(&fixture.managers, &rows);
    let locks = fixture.waiting(2).await;
    drop(circle);
    fixture.waiting(0).await;
    // The same locks as before, read while they were in a circle.
    let deadlocks = fixture.deadlocks(&locks).await;
    assert_eq!(deadlocks.all(), [], "{deadlocks}");
    // Again with other nodes: the first look is about nodes that are gone.
    let _circle = Circle::start(&fixture.managers, &rows);
    fixture.waiting(2).await;
    assert_eq!(fixture.deadlocks(&locks).await.all(), []);
}

#[tokio::test]
async fn a_waiter_says_what_its_owner_holds_and_until_when_it_waits() {
    let fixture = Fixture::start(1).await;
    let manager = &fixture.managers[0];
    let (a, b) = (Mutex::new(manager, "/locks/a").unwrap(), Mutex::new(manager, "/locks/b").unwrap());
    let _other = Mutex::new(&fixture.observer, "/locks/b").unwrap().acquire().await.unwrap();
    let owner = Owner::new("order 4711");
    let waiter = tokio::spawn(async move {
        let limit = Timing::scaled(Duration::from_secs(600));
        let take_both = async { (a.acquire().await, b.acquire_timeout(limit).await) };
        drop(owner.scope(take_both).await);
    });
    // A survey that began before the wait may lack the first lock.
    fixture.waiting(1).await;
    let locks = fixture.waiting(1).await;
    let waiting = locks.iter().flat_map(|lock| lock.waiters()).next().unwrap();
    let holder = locks[0].holders().next().unwrap();
    let identity = waiting.identity();
    assert_eq!(identity.owner(), Some("order 4711"));
    assert!(holder.name().contains(&identity.holds()[0]), "{identity} {}", holder.name());
    assert!(identity.until().unwrap() > SystemTime::now(), "{identity}");
    assert_eq!(holder.identity().holds(), [""; 0], "the owner held nothing then");
    waiter.abort();
}

#[tokio::test]
async fn a_ticket_names_no_holds_because_its_owner_works() {
    let fixture = Fixture::start(1).await;
    let manager = &fixture.managers[0];
    let (a, b) = (Mutex::new(manager, "/locks/a").unwrap(), Mutex::new(manager, "/locks/b").unwrap());
    let _other = Mutex::new(&fixture.observer, "/locks/b").unwrap().acquire().await.unwrap();
    let _both =
        Owner::new("x").scope(async { (a.acquire().await.unwrap(), b.enqueue().await.unwrap()) }).await;
    let locks = fixture.waiting(1).await;
    let waiting = locks.iter().flat_map(|lock| lock.waiters()).next().unwrap();
    assert_eq!((waiting.identity().owner(), waiting.identity().holds().len()), (Some("x"), 0));
    let none = Deadlocks::among(&fixture.observer, &locks, Duration::ZERO).await.unwrap();
    assert_eq!(none.to_string(), "no deadlock");
}

/// The create id in the path of a node.
fn create_id(node: &str) -> String {
    lockkeeper_core::NodeName::create_id(node).unwrap().to_owned()
}

/// Two processes hold a lock each, and start a process each that waits for the other's lock. `inner` are the
/// process ids of these. Returns how many deadlocks are found.
async fn nested(inner: [u32; 2]) -> usize {
    let fixture = Fixture::start(4).await;
    let lock = |at: usize, path: &str, data: Vec<u8>| {
        Mutex::new(&fixture.managers[at], path).unwrap().with_node_data(data)
    };
    let first = lock(0, "/locks/a", b"host=h pid=1".to_vec()).acquire().await.unwrap();
    let second = lock(1, "/locks/b", b"host=h pid=2".to_vec()).acquire().await.unwrap();
    let within = |pid: u32, node: &str| {
        Identity::append_wait(format!("host=h pid={pid}").as_bytes(), &[create_id(node)], None)
    };
    let waiters = [
        lock(2, "/locks/b", within(inner[0], first.path())),
        lock(3, "/locks/a", within(inner[1], second.path())),
    ];
    let _waiting = waiters.map(|mutex| tokio::spawn(async move { mutex.acquire().await.map(drop) }));
    let locks = fixture.waiting(2).await;
    fixture.deadlocks(&locks).await.found().count()
}

#[tokio::test]
async fn a_wait_in_a_process_that_was_started_under_a_lock_is_a_wait_of_the_holder() {
    assert_eq!(nested([3, 4]).await, 1);
}

#[tokio::test]
async fn a_hold_of_a_former_session_of_the_waiters_process_proves_no_deadlock() {
    assert_eq!(nested([1, 2]).await, 0);
}
