//! Tickets from before the beginning of a shutdown, whose `wait` is called after it.

use lockkeeper::{Mutex, ReentrantMutex, RwLock, Semaphore};

use super::fixture::{ClosingFixture, is_closed};
use crate::limit::within;
use crate::server_fixture::LOCK;

#[tokio::test]
async fn a_ticket_at_the_head_of_the_queue_grants_nothing_after_the_beginning() {
    let fixture = ClosingFixture::set().await;
    let mutex = Mutex::new(&fixture.actor, LOCK).unwrap();
    let held = mutex.acquire().await.unwrap();
    let (mut next, mut last) = (mutex.enqueue().await.unwrap(), mutex.enqueue().await.unwrap());
    held.release().await.unwrap();
    let closing = fixture.begin().await;
    assert!(is_closed(&within("an answer", next.wait()).await.unwrap()));
    assert!(is_closed(&within("an answer", last.wait()).await.unwrap()));
    // The ticket keeps its node until it is dropped.
    assert_eq!(next.refresh().await.unwrap(), 0);
    drop((next, last));
    assert!(is_closed(&mutex.enqueue().await));
    closing.ends("tickets").await;
}

#[tokio::test]
async fn no_ticket_of_any_kind_grants_anything_after_the_beginning() {
    let fixture = ClosingFixture::set().await;
    let path = |name: &str| format!("/locks/{name}");
    let permits = Semaphore::new(&fixture.actor, path("permits"), 2).unwrap();
    let lock = RwLock::new(&fixture.actor, path("rw")).unwrap();
    let own = ReentrantMutex::new(&fixture.actor, path("own")).unwrap();
    let owner = lockkeeper::Owner::new("one");
    let mut permit = permits.enqueue().await.unwrap();
    let mut reader = lock.enqueue_read().await.unwrap();
    let mut reentrant = own.enqueue(&owner).await.unwrap();
    let closing = fixture.begin().await;
    assert!(is_closed(&within("an answer", permit.wait()).await.unwrap()));
    assert!(is_closed(&within("an answer", reader.wait()).await.unwrap()));
    assert!(is_closed(&within("an answer", reentrant.wait()).await.unwrap()));
    drop((permit, reader, reentrant));
    closing.ends("tickets").await;
}
