use futures::future::BoxFuture;
use lockkeeper_lock::{Deadline, Lock, LockError, LockGuard};

use super::handle::Semaphore;

/// A number of permits of a [`Semaphore`] as one [`Lock`]. Made by [`Semaphore::permits`].
#[derive(Clone, Debug)]
pub struct Permits {
    semaphore: Semaphore,
    count: u32,
}

impl Semaphore {
    /// Returns `permits` permits as a [`Lock`](crate::Lock).
    #[must_use]
    pub fn permits(&self, permits: u32) -> Permits {
        Permits::of(self, permits)
    }
}

impl Permits {
    pub(super) fn of(semaphore: &Semaphore, count: u32) -> Self {
        Self { semaphore: semaphore.clone(), count }
    }
}

impl Lock for Permits {
    fn name(&self) -> &str {
        self.semaphore.name()
    }

    fn acquire_by(&self, deadline: Deadline) -> BoxFuture<'static, Result<LockGuard, LockError>> {
        let permits = self.clone();
        Box::pin(
            async move { Ok(LockGuard::new(permits.semaphore.acquire_by(permits.count, deadline).await?)) },
        )
    }

    fn try_acquire(&self) -> BoxFuture<'static, Result<Option<LockGuard>, LockError>> {
        let permits = self.clone();
        Box::pin(async move {
            let taken = permits.semaphore.try_acquire_many(permits.count).await?;
            Ok(taken.map(LockGuard::new))
        })
    }
}
