//! Implements `lockkeeper_lock::Lock` for the recipes.

use std::sync::Arc;

use futures::future::BoxFuture;
use lockkeeper_core::{BootInstant, Deadline, Error, FencingToken, Hold};
use lockkeeper_lock::{HeldLock, LockError};

use super::guard::HoldAccess;
use super::lock_guard::LockGuard;
use super::recipe::Recipe;

/// The guard of one lock. Several locks are no lock of any engine: they have several tokens.
#[derive(Debug)]
struct Sole(LockGuard);

impl Sole {
    fn hold(&self) -> &Hold {
        self.0.holds.first()
    }
}

impl HeldLock for Sole {
    fn check(&self) -> Result<(), LockError> {
        Ok(self.0.check().map_err(Error::from)?)
    }

    fn valid_until(&self) -> BootInstant {
        self.0.valid_until()
    }

    fn fencing_token(&self) -> FencingToken {
        self.hold().fencing_token()
    }

    fn lost(&self) -> BoxFuture<'_, LockError> {
        Box::pin(async { Error::from(self.0.lost().await).into() })
    }

    fn release(self: Box<Self>) -> BoxFuture<'static, Result<(), LockError>> {
        Box::pin(async { Ok(self.0.release().await.map_err(Error::from)?) })
    }
}

/// Acquires a recipe as a lock of any engine.
pub(crate) fn acquire(
    recipe: Arc<dyn Recipe>,
    deadline: Deadline,
) -> BoxFuture<'static, Result<lockkeeper_lock::LockGuard, LockError>> {
    Box::pin(async move { Ok(lockkeeper_lock::LockGuard::new(Sole(recipe.acquire(deadline).await?))) })
}

/// Tries a recipe as a lock of any engine.
pub(crate) fn try_acquire(
    recipe: Arc<dyn Recipe>,
) -> BoxFuture<'static, Result<Option<lockkeeper_lock::LockGuard>, LockError>> {
    Box::pin(async move {
        let taken = recipe.try_acquire().await?;
        Ok(taken.map(|guard| lockkeeper_lock::LockGuard::new(Sole(guard))))
    })
}

/// Makes a recipe a [`Lock`](super::Lock), and a lock of any engine.
macro_rules! single_lock {
    ($(#[$doc:meta])* $kind:ty) => {
        $(#[$doc])*
        impl $crate::lock::Lock for $kind {
            fn as_recipe(&self) -> $crate::lock::Sealed<'_> {
                $crate::lock::Sealed(self)
            }
        }

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
    };
}

pub(crate) use single_lock;
