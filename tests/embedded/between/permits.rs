//! Between a semaphore's look and its transaction.

use std::time::Duration;

use futures::poll;
use lockkeeper::{ConnectionManager, CreateMode, MultiLock, Mutex, Semaphore};
use lockkeeper_testserver::{Fault, Op, When};

use super::hold_the_clients_up;
use crate::limit::within;
use crate::world::{World, children};

const PERMITS: &str = "/permits";
const IN_LINE: &str = "/permits/locks";
const LEASES: &str = "/permits/leases";

/// How often the link is broken between two steps, until it was: a thread may stand still elsewhere.
const TRIES: usize = 10;

fn semaphore(manager: &ConnectionManager) -> Semaphore {
    Semaphore::new(manager, PERMITS, 1).unwrap()
}

/// One thread for all clients: while it is held up, both the answer and the end of its connection come in.
#[tokio::test]
async fn permits_taken_over_another_connection_than_they_were_looked_at_are_looked_at_again() {
    for _ in 0..TRIES {
        if is_moved_between_look_and_take().await {
            return;
        }
    }
    panic!("the link never broke between the look and the transaction");
}

/// A server that shows the past is played by a lease that comes after the look: whoever has been there since before the
/// look, unseen, is in the same place. False when the link broke too late.
async fn is_moved_between_look_and_take() -> bool {
    let world = World::start().await.unwrap();
    semaphore(&world.rival).acquire().await.unwrap().release().await.unwrap();
    let actor = world.actor().await.unwrap();
    let session = world.sessions_of_actor()[0];
    let look = world.server.fault(When::op(Op::GetChildren2).path(LEASES).session(session), Fault::HoldReply);
    let cut = world
        .server
        .fault(When::op(Op::GetData).path("/probe").session(session), Fault::DropConnectionBefore);
    let acquiring = tokio::spawn({
        let semaphore = semaphore(&actor);
        async move { semaphore.acquire().await.unwrap() }
    });
    within("the look", look.hit()).await.unwrap();
    let probe = "/probe".parse().unwrap();
    let probing = tokio::spawn(async move { actor.znodes().read(&probe).await.map(drop) });
    within("the cut behind it", cut.hit()).await.unwrap();
    world.server.refuse_connections();
    look.release();
    hold_the_clients_up();
    let unseen = format!("{LEASES}/unseen-lease-0000000007").parse().unwrap();
    world.rival.znodes().create(&unseen, b"", CreateMode::Persistent).await.unwrap();
    world.server.accept_connections();

    let out = |leases: usize, in_line: usize| {
        world.server.wait_until(move |machine| {
            children(machine, LEASES).len() == leases && children(machine, IN_LINE).len() == in_line
        })
    };
    if tokio::time::timeout(Duration::from_secs(2), out(2, 0)).await.is_err() {
        return false;
    }
    within("the permit too many is given back, and waited for", out(1, 1)).await.unwrap();
    assert!(!acquiring.is_finished(), "a permit too many");
    world.rival.znodes().delete(&unseen).await.unwrap();
    within("a permit", acquiring).await.unwrap().unwrap().release().await.unwrap();
    let _ = probing.await.unwrap();
    true
}

/// The taker in front takes the permit between the next taker's create and the look at its answer.
#[tokio::test]
async fn leases_read_while_another_taker_was_in_front_are_read_again() {
    const DOOR: &str = "/door";
    let world = World::start().await.unwrap();
    let session = world.server.sessions()[0];
    let semaphore = semaphore(&world.rival);
    // So often that sequence numbers tell.
    for _ in 0..8 {
        semaphore.acquire().await.unwrap().release().await.unwrap();
    }
    world.round_trip_of_rival().await.unwrap();
    let closed = Mutex::new(&world.actor().await.unwrap(), DOOR).unwrap().acquire_owned().await.unwrap();
    let both =
        MultiLock::builder().lock(&semaphore.permits(1)).lock(&Mutex::new(&world.rival, DOOR).unwrap());
    let both = both.atomic().build().unwrap();
    let taking = tokio::spawn(async move { both.acquire().await.unwrap() });
    let in_line = |count: usize| {
        world.server.wait_until(move |machine| {
            (children(machine, IN_LINE).len(), children(machine, DOOR).len()) == (count, 2)
        })
    };
    within("a taker that waits for its other lock", in_line(1)).await.unwrap();
    let mut next = Box::pin(semaphore.acquire());
    assert!(poll!(&mut next).is_pending());
    within("the next taker behind it", in_line(2)).await.unwrap();
    closed.release().await.unwrap();
    let first = within("both locks", taking).await.unwrap().unwrap();
    let look = When::op(Op::GetChildren2).path(LEASES).session(session);
    let look = world.server.fault(look, Fault::DelayRequest(Duration::ZERO));
    tokio::select! {
        _ = &mut next => panic!("a permit too many"),
        looked = within("a look at the leases", look.hit()) => looked.unwrap(),
    }
    first.release().await.unwrap();
    within("a permit", next).await.unwrap().unwrap().release().await.unwrap();
}
