//! The locks as locks of any engine, for code that does not know where they are kept.

use std::time::Duration;

use lockkeeper::{
    ConnectionManager, Election, Error, Lock, LockError, MultiLock, MultiLockGuard, Mutex, Owner,
    ReentrantMutex, RwLock, Semaphore,
};
use lockkeeper_lock::ErrorKind;

use crate::server_fixture::ServerFixture;

fn locks(manager: &ConnectionManager) -> Vec<Box<dyn Lock>> {
    let reentrant = ReentrantMutex::new(manager, "/any/reentrant").unwrap();
    let rw_lock = RwLock::new(manager, "/any/rw").unwrap();
    let both = ["/any/one", "/any/two"].map(|path| Mutex::new(manager, path).unwrap());
    vec![
        Box::new(Mutex::new(manager, "/any/mutex").unwrap()),
        Box::new(reentrant.for_owner(&Owner::new("any"))),
        Box::new(rw_lock.writer()),
        Box::new(rw_lock.reader()),
        Box::new(Semaphore::new(manager, "/any/semaphore", 2).unwrap().permits(2)),
        Box::new(Election::new(manager, "/any/election", "one").unwrap()),
        Box::new(MultiLock::builder().lock(&both[1]).lock(&both[0]).build().unwrap()),
    ]
}

/// Sells under a lock, wherever the lock is kept.
async fn sell(lock: &dyn Lock) -> Result<u64, LockError> {
    let guard = lock.acquire_timeout(Duration::from_secs(30)).await?;
    assert!(guard.is_valid() && guard.valid_until().remaining() > Duration::ZERO);
    let token = guard.run(async { guard.fencing_token() }).await?;
    guard.release().await?;
    Ok(token.as_u64())
}

#[tokio::test]
async fn every_lock_is_a_lock_of_any_engine() {
    let server_fixture = ServerFixture::start().await.unwrap();
    for lock in locks(&server_fixture.rival) {
        let first = sell(&*lock).await.unwrap();
        assert!(sell(&*lock).await.unwrap() > first, "{lock:?}");
        assert!(lock.name().starts_with("/any/"));
    }
}

#[tokio::test]
async fn a_lock_of_any_engine_excludes_the_typed_one_and_tells_its_errors_by_kind() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let mutex = Mutex::new(&server_fixture.rival, "/any/mutex").unwrap();
    let other: Box<dyn Lock> = Box::new(mutex.clone());

    let guard = mutex.acquire().await.unwrap();
    assert!(other.try_acquire().await.unwrap().is_none());
    let error = other.acquire_timeout(Duration::ZERO).await.unwrap_err();
    assert!(error.is_timeout() && error.engine::<Error>().is_some_and(Error::is_timeout), "{error}");
    guard.release().await.unwrap();

    let guard = other.acquire().await.unwrap();
    server_fixture.rival.shutdown().await.unwrap();
    let lost = guard.lost().await;
    assert!(lost.is_lost() && !guard.is_valid(), "{lost}");
    assert_eq!(guard.release().await.unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(other.acquire().await.unwrap_err().kind(), ErrorKind::Closed);
}

#[tokio::test]
async fn the_guard_of_any_engine_has_the_transactions_and_all_tokens_of_its_own_one() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = &server_fixture.rival;
    for lock in locks(manager) {
        let guard = lock.acquire().await.unwrap();
        let ours = guard.engine::<MultiLockGuard>().unwrap();
        let marker = format!("{}-{}", lock.name(), guard.fencing_token().as_u64());
        ours.txn().create(&marker, b"").commit().await.unwrap();
        assert!(manager.znodes().read(&marker).await.unwrap().is_some(), "{marker}");
        let token = ours.fencing_token(lock.name()).unwrap();
        assert_eq!(guard.fencing_token(), token, "the token of the path that names {lock:?}");
        guard.release().await.unwrap();
    }
}
