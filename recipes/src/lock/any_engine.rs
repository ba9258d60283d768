//! Implements [`lockkeeper_lock::Lock`] for the recipes.

use std::sync::Arc;

use futures::future::BoxFuture;
use lockkeeper_core::{BootInstant, Deadline, Error, FencingToken};
use lockkeeper_lock::{HeldLock, LockError, LockGuard};

use super::guard::HoldAccess;
use super::multi_lock_guard::MultiLockGuard;
use super::recipe::Recipe;

/// The guard of a lock of this crate, as that of any engine. Of several locks, the token is that of the first
/// path, which also names the lock: every taker of the same locks holds that one.
impl HeldLock for MultiLockGuard {
    fn check(&self) -> Result<(), LockError> {
        Ok(self.check().map_err(Error::from)?)
    }

    fn valid_until(&self) -> BootInstant {
        self.valid_until()
    }

    fn fencing_token(&self) -> FencingToken {
        self.holds.first().fencing_token()
    }

    fn lost(&self) -> BoxFuture<'_, LockError> {
        Box::pin(async { Error::from(self.lost().await).into() })
    }

    fn release(self: Box<Self>) -> BoxFuture<'static, Result<(), LockError>> {
        Box::pin(async { Ok((*self).release().await.map_err(Error::from)?) })
    }
}

/// Acquires a recipe as a lock of any engine.
pub(crate) fn acquire(
    recipe: Arc<dyn Recipe>,
    deadline: Deadline,
) -> BoxFuture<'static, Result<LockGuard, LockError>> {
    Box::pin(async move { Ok(LockGuard::new(recipe.acquire(deadline).await?)) })
}

/// Tries a recipe as a lock of any engine.
pub(crate) fn try_acquire(
    recipe: Arc<dyn Recipe>,
) -> BoxFuture<'static, Result<Option<LockGuard>, LockError>> {
    Box::pin(async move { Ok(recipe.try_acquire().await?.map(LockGuard::new)) })
}

/// Makes a recipe a lock of any engine, and a [`ZooKeeperLock`](super::ZooKeeperLock).
macro_rules! any_lock {
    ($(#[$doc:meta])* $kind:ty) => {
        $(#[$doc])*
        impl lockkeeper_lock::Lock for $kind {
            fn name(&self) -> &str {
                $crate::lock::Recipe::path(self).as_str()
            }

            fn acquire_by(
                &self,
                deadline: lockkeeper_lock::Deadline,
            ) -> futures::future::BoxFuture<
                'static,
                Result<lockkeeper_lock::LockGuard, lockkeeper_lock::LockError>,
            > {
                $crate::lock::any_engine::acquire($crate::lock::Recipe::shared(self), deadline)
            }

            fn try_acquire(
                &self,
            ) -> futures::future::BoxFuture<
                'static,
                Result<Option<lockkeeper_lock::LockGuard>, lockkeeper_lock::LockError>,
            > {
                $crate::lock::any_engine::try_acquire($crate::lock::Recipe::shared(self))
            }
        }

        impl $crate::lock::ZooKeeperLock for $kind {
            fn as_recipe(&self) -> $crate::lock::Sealed<'_> {
                $crate::lock::Sealed(self)
            }
        }
    };
}

pub(crate) use any_lock;
