use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use lockkeeper::{ConnectionManager, Error, HandOffPolicy, Mutex, MutexGuard, ReleaseError};

use super::{Granted, Plain, Recipe};
use crate::oracle::{Claim, Grant};
use crate::server_fixture::LOCK;

/// The mutex that keeps its node: taken, given back, and taken again while it lingers. Everyone else takes the plain one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keeping;

impl Keeping {
    fn mutex(manager: &ConnectionManager) -> Result<Mutex, Error> {
        Mutex::new(manager, LOCK)?
            .with_handoff(HandOffPolicy::default().idle_time(Duration::from_millis(300)))
    }
}

impl Recipe for Keeping {
    async fn acquire(self, manager: ConnectionManager) -> Result<Granted, Error> {
        let mutex = Self::mutex(&manager)?;
        let first = mutex.acquire().await?;
        let token = first.fencing_token();
        // Whatever comes of it: somebody else may have it next, or it is lost.
        let _ = first.release().await;
        let guard = mutex.acquire().await?;
        assert!(guard.fencing_token() > token, "{} after {token}", guard.fencing_token());
        Ok(Box::new(Kept { guard, mutex }))
    }

    async fn acquire_timeout(self, manager: ConnectionManager, timeout: Duration) -> Result<Granted, Error> {
        let mutex = Self::mutex(&manager)?;
        let guard = mutex.acquire_timeout(timeout).await?;
        Ok(Box::new(Kept { guard, mutex }))
    }

    async fn try_acquire(self, manager: ConnectionManager) -> Result<Option<Granted>, Error> {
        let mutex = Self::mutex(&manager)?;
        let guard = mutex.try_acquire().await?;
        Ok(guard.map(|guard| Box::new(Kept { guard, mutex }) as Granted))
    }

    async fn exclude(self, manager: ConnectionManager) -> Result<Granted, Error> {
        Plain.acquire(manager).await
    }
}

/// A guard, and what makes its node linger.
struct Kept {
    guard: MutexGuard,
    mutex: Mutex,
}

impl Grant for Kept {
    fn claims(&self) -> Vec<Claim<'_>> {
        vec![Claim::exclusive(self.guard.hold())]
    }

    fn release(self: Box<Self>) -> BoxFuture<'static, Result<(), ReleaseError>> {
        let Self { guard, mutex } = *self;
        // The last one to share it: released for good.
        drop(mutex);
        guard.release().boxed()
    }
}
