//! The recipes as the scenarios see them: one file for each, and one line in each table that is to try it.

mod kept;
mod mutex;
mod reentrant;
mod rw;
mod semaphore;
mod several;

use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

use lockkeeper::{ConnectionManager, Error};
use lockkeeper_testserver::Op;

pub(crate) use self::kept::Keeping;
pub(crate) use self::mutex::Plain;
pub(crate) use self::reentrant::Reentrant;
pub(crate) use self::rw::{Reading, Writing};
pub(crate) use self::semaphore::{InSemaphoreLayout, Permits, SharedPermits};
pub(crate) use self::several::Several;
use crate::oracle::Grant;

/// What an acquire yields, of whatever recipe.
pub(crate) type Granted = Box<dyn Grant>;

/// One way to take the lock at [`LOCK`](crate::server_fixture::LOCK).
///
/// What the court says of its grants is up to their [`Grant::claims`].
pub(crate) trait Recipe: Copy + Debug + Send + Sync + 'static {
    /// How many watches a waiter has that has settled down: mostly on whom it waits for and on its own node.
    const WATCHES: usize = 2;

    /// The requests by which it may take its place.
    const CREATES: &'static [Op] = &[Op::Create2];

    /// Makes what must be there before anyone comes.
    fn prepare(self, _: ConnectionManager) -> impl Future<Output = Result<(), Error>> + Send + 'static {
        std::future::ready(Ok(()))
    }

    fn acquire(
        self,
        manager: ConnectionManager,
    ) -> impl Future<Output = Result<Granted, Error>> + Send + 'static;

    fn acquire_timeout(
        self,
        manager: ConnectionManager,
        timeout: Duration,
    ) -> impl Future<Output = Result<Granted, Error>> + Send + 'static;

    fn try_acquire(
        self,
        manager: ConnectionManager,
    ) -> impl Future<Output = Result<Option<Granted>, Error>> + Send + 'static;

    /// Takes what excludes every grant of this recipe, and waits for every one of them.
    fn exclude(
        self,
        manager: ConnectionManager,
    ) -> impl Future<Output = Result<Granted, Error>> + Send + 'static {
        self.acquire(manager)
    }
}
