//! Between two guards of one owner, which share a hold and are released at the same time.

use std::future::Future;
use std::sync::Barrier;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures::poll;
use lockkeeper::{Owner, ReentrantMutex, RwLock};
use lockkeeper_testserver::{Fault, Op, When};

use crate::limit::within;
use crate::presence::client;
use crate::server_fixture::{LOCK, ServerFixture};

/// So often, because only then are steps of two threads mixed.
const ROUNDS: usize = 2_000;

#[tokio::test]
async fn guards_of_one_owner_that_are_released_at_the_same_time_are_all_released() {
    let server_fixture = ServerFixture::start().await.unwrap();
    // With a long session: the threads of the test keep its runtime waiting.
    let actor = client(&server_fixture).await;
    let (mutex, owner) = (ReentrantMutex::new(&actor, LOCK).unwrap(), Owner::new("both tasks"));
    for _ in 0..ROUNDS {
        let guards = [mutex.acquire(&owner).await.unwrap(), mutex.acquire(&owner).await.unwrap()];
        let begin = Barrier::new(guards.len());
        let mut releases = guards.map(|guard| Box::pin(guard.release()));
        // The first poll of each in a thread of its own.
        let first = std::thread::scope(|scope| {
            let first = releases.each_mut().map(|release| {
                scope.spawn(|| {
                    begin.wait();
                    release.as_mut().poll(&mut Context::from_waker(Waker::noop()))
                })
            });
            first.map(|first| first.join().unwrap())
        });
        for (release, first) in releases.into_iter().zip(first) {
            match first {
                Poll::Ready(released) => released.unwrap(),
                Poll::Pending => within("a release", release).await.unwrap().unwrap(),
            }
        }
    }
    server_fixture.queue_length_becomes(0).await.unwrap();
}

/// The last guard of a write waits for the read that its owner creates under it. Meanwhile the owner asks for
/// the write again: it must not share the hold that is being released.
#[tokio::test]
async fn a_hold_that_is_being_released_is_not_shared_again() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let actor = server_fixture.actor().await.unwrap();
    let session = server_fixture.sessions_of_actor()[0];
    let lock = RwLock::new(&actor, LOCK).unwrap().for_owner(&Owner::new("the owner"));
    let writing = lock.write().await.unwrap();
    let create = When::op(Op::Multi).path("/locks/lock/*").session(session);
    let create = server_fixture.server.fault(create, Fault::HoldReply);
    let mut reading = Box::pin(lock.read());
    assert!(poll!(&mut reading).is_pending());
    within("the create of the read", create.hit()).await.unwrap();
    let mut releasing = Box::pin(writing.release());
    assert!(poll!(&mut releasing).is_pending(), "it waits for the read");
    let mut again = Box::pin(lock.write_timeout(Duration::from_secs(5)));
    assert!(poll!(&mut again).is_pending(), "a hold that is being released was shared");
    create.release();
    let reading = within("the read", reading).await.unwrap().unwrap();
    within("the release of the write", releasing).await.unwrap().unwrap();
    let refused = within("the write of an owner that reads", again).await.unwrap();
    assert!(refused.is_err(), "an owner that reads cannot write");
    reading.release().await.unwrap();
    server_fixture.queue_length_becomes(0).await.unwrap();
}
