//! The two ways to acquire several locks.

use futures::future::join_all;
use lockkeeper_core::{Deadline, Error, Hold, MultiQueue, Phase, WholePath};
use tracing::{debug, instrument, warn};

use super::MultiLockError;
use super::handle::MultiLock;
use super::modes::Mode;
use crate::lock::{BatchEntry, MemberGuard, MultiLockGuard, Recipe, release};
use crate::owner::{Owner, OwnerRegistry, WouldDeadlock};

/// The result of a try to enter all queues at once.
enum AtOnce {
    Taken(MultiLockGuard),
    /// A contender is ahead in one of the queues.
    Occupied,
    /// The same owner holds one of the locks, or acquires it in another task: they cannot be entered as a
    /// batch.
    NoWay,
}

impl MultiLock {
    #[instrument(level = "debug", name = "acquire_all", skip_all, fields(first = %self.whole_path()))]
    pub(super) async fn take(&self, deadline: Deadline) -> Result<MultiLockGuard, MultiLockError> {
        if deadline.has_passed() {
            // No time to wait for a grant. Answers still have the operation timeout.
            return self.try_take().await?.ok_or_else(|| self.occupied(deadline));
        }
        self.check()?;
        loop {
            let taken = match self.0.mode {
                Mode::Ordered => self.take_in_order(deadline).await?,
                Mode::Atomic => self.take_in_place(deadline).await?,
            };
            match taken {
                Some(guard) => return Ok(guard),
                None => debug!("a member was lost during the acquire: starting again"),
            }
        }
    }

    #[instrument(level = "debug", name = "try_acquire_all", skip_all, fields(first = %self.whole_path()))]
    pub(super) async fn try_take(&self) -> Result<Option<MultiLockGuard>, MultiLockError> {
        self.check()?;
        let limit = Deadline::after(self.0.first.manager().operation_timeout());
        match self.at_once(limit).await {
            Ok(AtOnce::Taken(guard)) => return Ok(Some(guard)),
            Ok(AtOnce::Occupied) => return Ok(None),
            Ok(AtOnce::NoWay) => {}
            Err(cause) => return Err(MultiLockError::at(self.0.first.path(), cause)),
        }
        let mut guards: Vec<MemberGuard> = Vec::new();
        for member in self.members() {
            match member.try_acquire().await {
                Ok(Some(guard)) => guards.extend(guard.into_guards()),
                Ok(None) => {
                    undo(guards).await;
                    return Ok(None);
                }
                Err(cause) => return Err(stop(guards, &**member, cause).await),
            }
        }
        Ok(MultiLockGuard::of_all(guards).filter(MultiLockGuard::is_valid))
    }

    /// Of the first member, for errors and logs.
    fn whole_path(&self) -> WholePath {
        self.0.first.manager().whole_path(self.0.first.path())
    }

    fn occupied(&self, deadline: Deadline) -> MultiLockError {
        let (predecessor, predecessor_data) =
            ("a contender for one of the locks".to_owned(), "not read".to_owned());
        let held_here = self.members().find_map(|member| member.queues().0.held_here());
        let phase =
            Phase::Queued { predecessor, predecessor_data, ahead: 1, held_here: held_here.map(Box::new) };
        let path = self.0.first.path();
        let waited = deadline.waited();
        MultiLockError::at(path, Error::Timeout { phase, path: self.whole_path(), waited })
    }

    /// Acquires the members one after another. `None` if one was lost before the last was acquired.
    async fn take_in_order(&self, deadline: Deadline) -> Result<Option<MultiLockGuard>, MultiLockError> {
        if !self.0.others.is_empty() {
            let limit = deadline.or_after(self.0.first.manager().operation_timeout());
            match self.at_once(limit).await {
                Ok(AtOnce::Taken(guard)) => return Ok(Some(guard)),
                Ok(AtOnce::Occupied | AtOnce::NoWay) => {}
                // The ordered way gets the same error again, and knows the member.
                Err(error) => debug!(%error, "the batch failed"),
            }
        }
        let mut guards: Vec<MemberGuard> = Vec::new();
        for member in self.members() {
            let holds: Vec<&Hold> = guards.iter().map(MemberGuard::hold).collect();
            let acquired = tokio::select! {
                biased;
                _ = Hold::lost_any(&holds) => None,
                acquired = member.acquire(deadline) => Some(acquired),
            };
            match acquired {
                Some(Ok(guard)) => guards.extend(guard.into_guards()),
                Some(Err(cause)) => return Err(stop(guards, &**member, cause).await),
                None => {
                    undo(guards).await;
                    return Ok(None);
                }
            }
        }
        // A process that was paused may have a grant before the timer that ends the lease of an earlier one.
        Ok(MultiLockGuard::of_all(guards).filter(MultiLockGuard::is_valid))
    }

    /// Queues for all members by one transaction, and waits in all queues. `None` if the positions were lost.
    async fn take_in_place(&self, deadline: Deadline) -> Result<Option<MultiLockGuard>, MultiLockError> {
        let first = self.0.first.path();
        let at = |cause| MultiLockError::at(first, cause);
        let mut entries = Vec::new();
        for member in self.members() {
            let entry = member.batch_entry().ok_or_else(|| {
                let owner = member.owner().map_or_else(String::new, |owner| owner.to_string());
                let (path, advice) =
                    (member.manager().whole_path(member.path()), "take it only once at a time for one owner");
                MultiLockError::at(member.path(), WouldDeadlock { path, owner, advice }.into())
            })?;
            entries.push(entry);
        }
        let queues =
            MultiQueue::new(entries.iter().map(|entry| entry.queue(deadline)).collect()).map_err(at)?;
        let holds = queues.acquire(deadline).await.map_err(at)?;
        let entered = join_all(enter(entries, holds, Some(deadline))).await;
        let mut guards = Vec::new();
        let mut failed = None;
        for (entered, member) in entered.into_iter().zip(self.members()) {
            match entered {
                Ok(Some(one)) => guards.push(one),
                Ok(None) | Err(Error::Lost(_)) => failed = failed.or(Some(None)),
                Err(cause) => failed = failed.or(Some(Some((member, cause)))),
            }
        }
        match failed {
            None => Ok(MultiLockGuard::of_all(guards).filter(MultiLockGuard::is_valid)),
            Some(None) => {
                undo(guards).await;
                Ok(None)
            }
            Some(Some((member, cause))) => Err(stop(guards, &**member, cause).await),
        }
    }

    /// Takes all members if all are free. Never waits for another contender, and leaves no node behind.
    async fn at_once(&self, limit: Deadline) -> Result<AtOnce, Error> {
        let entries: Option<Vec<Box<dyn BatchEntry>>> =
            self.members().map(|member| member.batch_entry()).collect();
        let Some(entries) = entries else {
            return Ok(AtOnce::NoWay);
        };
        let now = Deadline::immediate();
        let queues = MultiQueue::new(entries.iter().map(|entry| entry.queue(now)).collect())?;
        let Some(holds) = queues.try_acquire(limit).await? else {
            return Ok(AtOnce::Occupied);
        };
        let mut guards = Vec::new();
        for entered in join_all(enter(entries, holds, None)).await {
            match entered? {
                Some(one) => guards.push(one),
                // The other guards are dropped, and so released.
                None => return Ok(AtOnce::Occupied),
            }
        }
        Ok(MultiLockGuard::of_all(guards)
            .filter(MultiLockGuard::is_valid)
            .map_or(AtOnce::Occupied, AtOnce::Taken))
    }

    /// Refuses a request that can never be granted, and an owner that holds a lock already: an owner that
    /// holds one lock and waits for another can be part of a deadlock.
    fn check(&self) -> Result<(), MultiLockError> {
        for member in self.members() {
            member.check().map_err(|cause| MultiLockError::at(member.path(), cause))?;
        }
        let owners = self.members().filter_map(|member| member.owner()).chain(Owner::current());
        let holders = OwnerRegistry::of(self.0.first.manager());
        for owner in owners {
            let Some(held) = holders.any_of(&owner) else { continue };
            let held = self.0.first.manager().whole_path(&held);
            if self.0.nesting {
                let first = self.whole_path();
                warn!(%owner, %held, %first, "an owner of a lock acquires several others");
                continue;
            }
            let advice = "take all in one multi-lock, or allow nesting if no holder waits for this owner";
            let cause = WouldDeadlock { path: held, owner: owner.to_string(), advice };
            return Err(MultiLockError::at(self.0.first.path(), cause.into()));
        }
        Ok(())
    }
}

fn enter(
    entries: Vec<Box<dyn BatchEntry>>,
    holds: Vec<Hold>,
    wait: Option<Deadline>,
) -> impl Iterator<Item = futures::future::BoxFuture<'static, Result<crate::lock::Entered, Error>>> {
    entries.into_iter().zip(holds).map(move |(entry, hold)| entry.enter(hold, wait))
}

/// Releases the members that were taken. The manager retries a release that failed.
async fn undo(guards: Vec<MemberGuard>) {
    for error in release(guards).await {
        debug!(%error, "releasing the members that were taken");
    }
}

async fn stop(guards: Vec<MemberGuard>, member: &dyn Recipe, cause: Error) -> MultiLockError {
    MultiLockError::after(member.path(), cause, release(guards).await)
}
