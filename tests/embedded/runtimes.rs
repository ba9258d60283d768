//! A manager whose users run on several runtimes: what serves all of them runs on the manager's.

use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt;
use lockkeeper::config::HandOffPolicy;
use lockkeeper::{ConnectionManager, Counter, Mutex, RateLimiter, Registration, RwLock, Semaphore};
use tokio::runtime::{Builder, Runtime};

use crate::limit::within;
use crate::server_fixture::{LOCK, ServerFixture};

/// A runtime of which nobody drives the tasks: its thread is busy, or its `block_on` has returned.
struct Stalled(Option<Runtime>);

impl Stalled {
    fn new() -> Self {
        Self(Some(Builder::new_current_thread().enable_all().build().unwrap()))
    }

    /// Drives the future itself, and none of the tasks that it spawns on this runtime.
    async fn drive<F: Future>(&self, future: F) -> F::Output {
        let future = Entered { stalled: self, future: pin!(future) };
        within("the future in the other runtime", future).await.unwrap()
    }

    /// Polls the future once.
    fn poll<F: Future + Unpin>(&self, future: &mut F) -> Option<F::Output> {
        let _entered = self.0.as_ref().unwrap().enter();
        future.now_or_never()
    }
}

impl Drop for Stalled {
    fn drop(&mut self) {
        self.0.take().unwrap().shutdown_background();
    }
}

struct Entered<'a, F> {
    stalled: &'a Stalled,
    future: Pin<&'a mut F>,
}

impl<F: Future> Future for Entered<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let _entered = self.stalled.0.as_ref().unwrap().enter();
        self.future.as_mut().poll(context)
    }
}

/// Nodes stay so long with a process that does not need them.
fn for_long() -> HandOffPolicy {
    HandOffPolicy::default().idle_time(Duration::from_secs(20)).max_time(Duration::from_secs(1))
}

async fn actor(fixture: &ServerFixture) -> ConnectionManager {
    let builder = ConnectionManager::builder(&fixture.server.connect_string());
    builder.session_timeout(Duration::from_secs(60)).connect().await.unwrap()
}

#[tokio::test]
async fn a_task_is_served_although_the_runtime_of_an_earlier_waiter_is_not_driven() {
    let (fixture, stalled) = (ServerFixture::start().await.unwrap(), Stalled::new());
    let ours = actor(&fixture).await;
    let semaphore = Semaphore::new(&ours, LOCK, 1).unwrap().with_handoff(for_long()).unwrap();
    let mutex = Mutex::new(&ours, "/mutex").unwrap().with_handoff(for_long()).unwrap();
    let lease = Semaphore::new(&fixture.rival, LOCK, 1).unwrap().acquire().await.unwrap();
    let guard = Mutex::new(&fixture.rival, "/mutex").unwrap().acquire().await.unwrap();
    {
        let (mut early, mut owning) = (pin!(semaphore.acquire()), pin!(mutex.acquire()));
        assert!(stalled.poll(&mut early).is_none() && stalled.poll(&mut owning).is_none());
    }
    lease.release().await.unwrap();
    guard.release().await.unwrap();
    within("a permit", semaphore.acquire()).await.unwrap().unwrap().release().await.unwrap();
    within("the mutex", mutex.acquire()).await.unwrap().unwrap().release().await.unwrap();
}

#[tokio::test]
async fn another_process_is_served_although_the_runtime_of_the_last_holder_is_not_driven() {
    let (fixture, stalled) = (ServerFixture::start().await.unwrap(), Stalled::new());
    let ours = actor(&fixture).await;
    let mutex = Mutex::new(&ours, "/mutex").unwrap().with_handoff(for_long()).unwrap();
    let semaphore = Semaphore::new(&ours, "/semaphore", 1).unwrap().with_handoff(for_long()).unwrap();
    let readers = RwLock::new(&ours, "/rw").unwrap().with_handoff(for_long()).unwrap();
    stalled
        .drive(async {
            mutex.acquire().await.unwrap().release().await.unwrap();
            semaphore.acquire().await.unwrap().release().await.unwrap();
            readers.read().await.unwrap().release().await.unwrap();
        })
        .await;
    let theirs = &fixture.rival;
    let mutex = Mutex::new(theirs, "/mutex").unwrap();
    within("the mutex", mutex.acquire()).await.unwrap().unwrap().release().await.unwrap();
    let semaphore = Semaphore::new(theirs, "/semaphore", 1).unwrap();
    within("a permit", semaphore.acquire()).await.unwrap().unwrap().release().await.unwrap();
    let writers = RwLock::new(theirs, "/rw").unwrap();
    within("the writer", writers.write()).await.unwrap().unwrap().release().await.unwrap();
}

#[tokio::test]
async fn calls_that_share_a_task_do_not_stop_with_the_runtime_of_the_first_call() {
    let (fixture, stalled) = (ServerFixture::start().await.unwrap(), Stalled::new());
    let ours = actor(&fixture).await;
    let calls = RateLimiter::new(&ours, "/calls", 100, Duration::from_secs(600)).unwrap();
    let counter = Counter::new(&ours, "/counter").unwrap();
    let (mut admitting, mut adding) = (pin!(calls.admit()), pin!(counter.add(1)));
    assert!(stalled.poll(&mut admitting).is_none() && stalled.poll(&mut adding).is_none());
    drop(within("an admission", calls.admit()).await.unwrap().unwrap());
    within("a sum", counter.add(1)).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_registration_comes_back_although_the_runtime_that_made_it_has_ended() {
    let (fixture, stalled) = (ServerFixture::start().await.unwrap(), Stalled::new());
    let ours = actor(&fixture).await;
    let registration = stalled
        .drive(async {
            let registration = Registration::register(&ours, "/workers/one", "here").unwrap();
            registration.registered().await.unwrap();
            registration
        })
        .await;
    drop(stalled);
    fixture.server.expire(fixture.sessions_of_actor()[0]);
    let is_back = fixture.server.wait_until(|machine| machine.tree().node("/workers/one").is_some());
    within("the node of the next session", is_back).await.unwrap();
    within("a release", registration.release()).await.unwrap().unwrap();
}
