//! Places that were taken before the beginning, and are waited for after it.

use lockkeeper::{Mutex, ReentrantMutex, RwLock, Semaphore};

use super::scene::{Scene, is_closed};
use crate::limit::within;
use crate::server_fixture::LOCK;

#[tokio::test]
async fn a_ticket_whose_turn_has_come_gives_nothing_after_the_beginning() {
    let scene = Scene::set().await;
    let mutex = Mutex::new(&scene.actor, LOCK).unwrap();
    let held = mutex.acquire().await.unwrap();
    let (mut next, mut last) = (mutex.enqueue().await.unwrap(), mutex.enqueue().await.unwrap());
    held.release().await.unwrap();
    let closing = scene.begin().await;
    assert!(is_closed(&within("an answer", next.wait()).await.unwrap()));
    assert!(is_closed(&within("an answer", last.wait()).await.unwrap()));
    // The place is kept for as long as the ticket is.
    assert_eq!(next.refresh().await.unwrap(), 0);
    drop((next, last));
    assert!(is_closed(&mutex.enqueue().await));
    closing.ends("tickets").await;
}

#[tokio::test]
async fn no_ticket_of_any_kind_gives_anything_after_the_beginning() {
    let scene = Scene::set().await;
    let path = |name: &str| format!("/locks/{name}");
    let permits = Semaphore::new(&scene.actor, path("permits"), 2).unwrap();
    let lock = RwLock::new(&scene.actor, path("rw")).unwrap();
    let own = ReentrantMutex::new(&scene.actor, path("own")).unwrap();
    let owner = lockkeeper::Owner::new("one");
    let mut permit = permits.enqueue().await.unwrap();
    let mut reader = lock.enqueue_read().await.unwrap();
    let mut reentrant = own.enqueue(&owner).await.unwrap();
    let closing = scene.begin().await;
    assert!(is_closed(&within("an answer", permit.wait()).await.unwrap()));
    assert!(is_closed(&within("an answer", reader.wait()).await.unwrap()));
    assert!(is_closed(&within("an answer", reentrant.wait()).await.unwrap()));
    drop((permit, reader, reentrant));
    closing.ends("tickets").await;
}
