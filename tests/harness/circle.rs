//! Owners that wait for each other.

use std::sync::Arc;

use lockkeeper::locks::ZooKeeperLock;
use lockkeeper::{ConnectionManager, Error, MultiLock, MultiLockGuard, Mutex, Owner, RwLock, Semaphore};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

/// What an owner takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// A mutex.
    Lock(&'static str),
    /// The side to read of a read/write lock.
    Read(&'static str),
    /// Its side to write.
    Write(&'static str),
    /// A permit of a semaphore with so many.
    Permit(&'static str, u32),
    /// Two mutexes together, in the order of their paths.
    Both(&'static str, &'static str),
    /// Two mutexes by one transaction.
    AtOnce(&'static str, &'static str),
}

/// Owners that each hold something, and wait for more until they are dropped.
#[derive(Debug)]
pub struct Circle {
    tasks: JoinSet<Result<(), Error>>,
}

impl Circle {
    /// Starts one owner for each row: it takes the first, and when all owners have theirs, waits for the
    /// second. The owners are named `owner 0`, `owner 1` and so on, and use the managers in turns.
    #[must_use]
    pub fn start(managers: &[ConnectionManager], rows: &[(Take, Take)]) -> Self {
        let mut tasks = JoinSet::new();
        let barrier = Arc::new(Barrier::new(rows.len()));
        let managers = managers.iter().cycle().cloned();
        for ((number, (first, second)), manager) in rows.iter().copied().enumerate().zip(managers) {
            let barrier = Arc::clone(&barrier);
            let owner = Owner::new(&format!("owner {number}"));
            tasks.spawn(async move {
                let for_owner = owner.clone();
                owner
                    .scope(async move {
                        let held = first.of(&manager, &for_owner)?.acquire().await?;
                        barrier.wait().await;
                        let second: MultiLockGuard = second.of(&manager, &for_owner)?.acquire().await?;
                        drop((second, held));
                        Ok(())
                    })
                    .await
            });
        }
        Self { tasks }
    }

    /// Waits until one owner has its second lock, and has released both.
    ///
    /// # Errors
    ///
    /// The error of the owner.
    pub async fn next_served(&mut self) -> Result<(), Error> {
        match self.tasks.join_next().await {
            Some(Ok(served)) => served,
            _ => Ok(()),
        }
    }
}

impl Take {
    fn of(self, manager: &ConnectionManager, owner: &Owner) -> Result<Box<dyn ZooKeeperLock>, Error> {
        let both = |one, other| -> Result<_, Error> {
            let (one, other) = (Mutex::new(manager, one)?, Mutex::new(manager, other)?);
            Ok(MultiLock::builder().lock(&one).lock(&other).allow_nesting())
        };
        Ok(match self {
            Self::Lock(path) => Box::new(Mutex::new(manager, path)?),
            Self::Read(path) => Box::new(RwLock::new(manager, path)?.for_owner(owner).reader()),
            Self::Write(path) => Box::new(RwLock::new(manager, path)?.for_owner(owner).writer()),
            Self::Permit(path, limit) => Box::new(Semaphore::new(manager, path, limit)?.permits(1)),
            Self::Both(one, other) => Box::new(both(one, other)?.build()?),
            Self::AtOnce(one, other) => Box::new(both(one, other)?.atomic().build()?),
        })
    }
}
