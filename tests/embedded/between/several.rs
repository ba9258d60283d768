//! Faults between the grant in one queue and the grant in another.

use std::time::Duration;

use lockkeeper::locks::MultiLockBuilder;
use lockkeeper::znodes::CreateMode;
use lockkeeper::{ConnectionManager, MultiLock, Mutex, MutexGuard, Owner, ReentrantMutex, Semaphore};
use lockkeeper_testserver::fault::ArmedFault;
use lockkeeper_testserver::{Fault, Op, When};

use crate::limit::within;
use crate::server_fixture::{ServerFixture, children};

const FIRST: &str = "/several/a";
const SECOND: &str = "/several/b";

#[tokio::test]
async fn a_member_whose_node_was_deleted_during_the_wait_for_another_is_not_held() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let (first, second) = (
        Mutex::new(&server_fixture.rival, FIRST).unwrap(),
        Mutex::new(&server_fixture.rival, SECOND).unwrap(),
    );
    let held = first.acquire().await.unwrap();
    let actor = server_fixture.actor().await.unwrap();
    let both = MultiLock::builder()
        .lock(&Mutex::new(&actor, FIRST).unwrap())
        .lock(&Mutex::new(&actor, SECOND).unwrap())
        .atomic()
        .build()
        .unwrap();
    let taking = tokio::spawn(async move { both.acquire().await.unwrap() });
    let queues = |one: usize, two: usize| {
        server_fixture.server.wait_until(move |machine| {
            (children(machine, FIRST).len(), children(machine, SECOND).len()) == (one, two)
        })
    };
    within("a node in both queues", queues(2, 1)).await.unwrap();
    // The waiter watches its predecessor and its own node.
    within("its watches", server_fixture.server.wait_until(|machine| machine.watch_count(0) == 2))
        .await
        .unwrap();
    let mine = server_fixture.server.inspect(|machine| format!("{SECOND}/{}", children(machine, SECOND)[0]));
    assert!(server_fixture.server.delete_node(&mine));
    let taken = second.acquire().await.unwrap();
    held.release().await.unwrap();
    within("a node in both queues again", queues(1, 2)).await.unwrap();
    assert!(!taking.is_finished() && taken.is_valid());
    taken.release().await.unwrap();
    within("both", taking).await.unwrap().unwrap().release().await.unwrap();
}

/// The node of a client's mutex is deleted by hand, and the mutex is another client's.
async fn takes_over(server_fixture: &ServerFixture, path: &str) -> MutexGuard {
    let mine = server_fixture.server.inspect(|machine| format!("{path}/{}", children(machine, path)[0]));
    assert!(server_fixture.server.delete_node(&mine));
    Mutex::new(&server_fixture.rival, path).unwrap().acquire().await.unwrap()
}

/// The client watches a node that it has held for a while.
fn watch_on_second(server_fixture: &ServerFixture) -> ArmedFault {
    let session = server_fixture.sessions_of_actor()[0];
    let watch = When::ops([Op::Exists, Op::GetData]).path("/several/b/*").session(session);
    server_fixture.server.fault(watch, Fault::DelayReply(Duration::ZERO))
}

#[tokio::test]
async fn a_member_that_is_lost_while_another_one_waits_for_permits_is_not_held() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let permits = Semaphore::new(&server_fixture.rival, FIRST, 1).unwrap().acquire().await.unwrap();
    let actor = server_fixture.actor().await.unwrap();
    let both = MultiLock::builder()
        .lock(&Semaphore::new(&actor, FIRST, 1).unwrap().permits(1))
        .lock(&Mutex::new(&actor, SECOND).unwrap())
        .atomic()
        .build()
        .unwrap();
    let watch = watch_on_second(&server_fixture);
    let taking = tokio::spawn(async move { both.acquire().await.unwrap() });
    within("a watch on the held node", watch.hit()).await.unwrap();
    let taken = within("the other's lock", takes_over(&server_fixture, SECOND)).await.unwrap();
    permits.release().await.unwrap();
    let again = server_fixture.server.wait_until(|machine| children(machine, SECOND).len() == 2);
    within("a node in the queue again", again).await.unwrap();
    assert!(!taking.is_finished() && taken.is_valid());
    taken.release().await.unwrap();
    let both = within("both", taking).await.unwrap().unwrap();
    assert!(both.is_valid());
    both.release().await.unwrap();
}

#[tokio::test]
async fn a_try_that_loses_a_member_while_it_takes_permits_holds_nothing() {
    let server_fixture = ServerFixture::start().await.unwrap();
    // With the data of a foreign client and without its first lease: the taker lists the leases again.
    let znodes = server_fixture.rival.znodes();
    for (path, data) in [("/several", ""), (FIRST, ""), ("/several/a/leases", "10.0.0.9")] {
        znodes.create(path, data, CreateMode::Persistent).await.unwrap();
    }
    let earlier =
        znodes.create("/several/a/leases/lease-", "", CreateMode::PersistentSequential).await.unwrap();
    znodes.delete(earlier).await.unwrap();
    let actor = server_fixture.actor().await.unwrap();
    let both = MultiLock::builder()
        .lock(&Semaphore::new(&actor, FIRST, 1).unwrap().permits(1))
        .lock(&Mutex::new(&actor, SECOND).unwrap())
        .build()
        .unwrap();
    let session = server_fixture.sessions_of_actor()[0];
    let taking = When::op(Op::Multi).path("/several/a/leases/*").session(session);
    let taking = server_fixture.server.fault(taking, Fault::HoldReply);
    let trying = tokio::spawn(async move { both.try_acquire().await.unwrap() });
    let watch = watch_on_second(&server_fixture);
    within("the permit", taking.hit()).await.unwrap();
    within("a watch on the held node", watch.hit()).await.unwrap();
    let taken = within("the other's lock", takes_over(&server_fixture, SECOND)).await.unwrap();
    taking.release();
    assert!(within("the try", trying).await.unwrap().unwrap().is_none() && taken.is_valid());
    let free = server_fixture.server.wait_until(|machine| children(machine, "/several/a/leases").is_empty());
    within("the end of the lease", free).await.unwrap();
}

/// The owner holds the first member already, so the members are tried one after another.
#[tokio::test]
async fn a_try_that_loses_a_member_while_it_tries_another_one_holds_nothing() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let actor = server_fixture.actor().await.unwrap();
    let owner = Owner::new("one");
    let first = ReentrantMutex::new(&actor, FIRST).unwrap();
    let held = first.acquire(&owner).await.unwrap();
    let both = MultiLock::builder()
        .lock(&first.for_owner(&owner))
        .lock(&Mutex::new(&actor, SECOND).unwrap())
        .allow_nesting()
        .build()
        .unwrap();
    let session = server_fixture.sessions_of_actor()[0];
    let second = When::op(Op::Create2).path("/several/b/*").session(session);
    let second = server_fixture.server.fault(second, Fault::HoldReply);
    let trying = tokio::spawn(async move { both.try_acquire().await.unwrap() });
    within("the second member", second.hit()).await.unwrap();
    let taken = within("the other's lock", takes_over(&server_fixture, FIRST)).await.unwrap();
    within("the loss", held.lost()).await.unwrap();
    second.release();
    assert!(within("the try", trying).await.unwrap().unwrap().is_none() && taken.is_valid());
}

fn of_two(manager: &ConnectionManager) -> MultiLockBuilder {
    let (first, second) = (Mutex::new(manager, FIRST).unwrap(), Mutex::new(manager, SECOND).unwrap());
    MultiLock::builder().lock(&first).lock(&second)
}

#[tokio::test]
async fn locks_that_are_free_are_taken_by_one_transaction_also_without_time_to_wait() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let actor = server_fixture.actor().await.unwrap();
    let session = server_fixture.sessions_of_actor()[0];
    of_two(&actor).build().unwrap().acquire().await.unwrap().release().await.unwrap();
    for is_atomic in [false, true] {
        let both = if is_atomic { of_two(&actor).atomic().build() } else { of_two(&actor).build() }.unwrap();
        for limit in [Duration::ZERO, Duration::from_secs(60)] {
            let creates = [Op::Create, Op::Create2, Op::Multi].map(|op| {
                let create = When::op(op).session(session).always();
                server_fixture.server.fault(create, Fault::DelayReply(Duration::ZERO))
            });
            let held = within("both", both.acquire_timeout(limit)).await.unwrap().unwrap();
            let sent = creates.map(|create| create.hits());
            assert_eq!(sent, [0, 0, 1], "atomic: {is_atomic}, {limit:?}");
            held.release().await.unwrap();
        }
        let occupied = Mutex::new(&server_fixture.rival, FIRST).unwrap().acquire().await.unwrap();
        let error = within("the end", both.acquire_timeout(Duration::ZERO)).await.unwrap().unwrap_err();
        assert!(error.is_timeout() && error.is_transient(), "{error}");
        occupied.release().await.unwrap();
    }
}

#[tokio::test]
async fn a_path_is_in_one_mode_and_all_members_are_of_one_manager() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let actor = server_fixture.actor().await.unwrap();
    let ordered = [of_two(&actor).build().unwrap(), of_two(&actor).build().unwrap()];
    for multi_lock in ordered {
        let refused = of_two(&actor).atomic().build().unwrap_err();
        assert!(refused.to_string().contains("in the other mode"), "{refused}");
        drop(multi_lock);
    }
    drop(of_two(&actor).atomic().build().unwrap());
    let foreign = Mutex::new(&server_fixture.rival, "/several/c").unwrap();
    let refused = of_two(&actor).lock(&foreign).build().unwrap_err();
    assert!(refused.to_string().contains("manager"), "{refused}");
}
