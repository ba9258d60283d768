use lockkeeper_core::{ErrorKind, RecipeError, WholePath};
use thiserror::Error;

/// The error of an acquire for the [owner in scope](crate::Owner::scope) where there is none.
/// [`Error::recipe`](crate::Error::recipe) has it. Nothing was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("no owner is in scope here; run this within Owner::scope(), or name an owner")]
pub struct NoOwner;

impl RecipeError for NoOwner {}

/// The error of an acquire that could never end, because the waiter itself holds the lock.
/// [`Error::recipe`](crate::Error::recipe) has it. Nothing was sent.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let manager = lockkeeper::ConnectionManager::connect(&server.connect_string()).await?;
/// use lockkeeper::{Mutex, Owner};
/// use lockkeeper::error::{ErrorKind, WouldDeadlock};
///
/// let (mutex, owner) = (Mutex::new(&manager, "/locks/report")?, Owner::new("order-4711"));
/// let guard = owner.scope(mutex.acquire()).await?;
/// let refused = owner.scope(mutex.acquire()).await.unwrap_err();
/// assert!(refused.recipe::<WouldDeadlock>().is_some());
/// assert_eq!(refused.kind(), ErrorKind::Misuse);
/// guard.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{owner} holds {path} already and would wait for itself; {advice}")]
#[non_exhaustive]
pub struct WouldDeadlock {
    /// The path of the lock.
    pub path: WholePath,
    /// The owner that holds the lock.
    pub owner: String,
    /// What to do instead.
    pub advice: &'static str,
}

impl RecipeError for WouldDeadlock {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Misuse
    }
}

#[cfg(test)]
mod tests {
    use lockkeeper_core::{Error, Outcome};

    use super::*;

    #[test]
    fn an_owner_that_would_wait_for_itself_misuses_the_lock() {
        let (path, owner) = ("/locks/a".into(), "order-4711".to_owned());
        let error = Error::from(WouldDeadlock { path, owner, advice: "release it first" });
        assert_eq!((error.kind(), error.outcome()), (ErrorKind::Misuse, Outcome::NotApplied));
        assert!(!error.is_transient());
        assert_eq!(Error::from(NoOwner).kind(), ErrorKind::Recipe);
    }
}
