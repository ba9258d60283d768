//! The auto traits users rely on: guards move between tasks, futures are spawned.

use crate::election::{CandidateState, Leader};
use crate::locks::ZooKeeperLock;
use crate::mutex::MutexTicket;
use crate::reentrant_mutex::ReentrantTicket;
use crate::rw_lock::{ReadTicket, UpgradeError, WriteTicket};
use crate::schedule::{ScheduleInspection, Slot};
use crate::semaphore::{SemaphoreTicket, SharedLimit};
use crate::{
    Admission, Barrier, ConnectionManager, Counter, DoubleBarrier, Election, Error, FencingToken, Hold,
    IdBlocks, Inside, Inspection, Leadership, Lease, Mutex, MutexGuard, OnceCell, Owner, RateLimiter,
    ReadGuard, ReentrantMutex, ReentrantMutexGuard, ReleaseError, Revoker, RwLock, Schedule, Semaphore,
    SharedCount, Txn, WriteGuard,
};
use lockkeeper_core::{TxnError, Watch};

fn shareable<T: Send + Sync + Unpin>() {}
fn spawnable<T: Send + 'static>(_: impl Fn(&'static T) -> Box<dyn Send>) {}

#[test]
fn locks_and_guards_may_be_shared_between_threads() {
    shareable::<ConnectionManager>();
    shareable::<Mutex>();
    shareable::<MutexGuard>();
    shareable::<ReentrantMutex>();
    shareable::<ReentrantMutexGuard>();
    shareable::<RwLock>();
    shareable::<ReadGuard>();
    shareable::<WriteGuard>();
    shareable::<UpgradeError>();
    shareable::<Owner>();
    shareable::<MutexTicket>();
    shareable::<ReentrantTicket>();
    shareable::<ReadTicket>();
    shareable::<WriteTicket>();
    shareable::<SemaphoreTicket>();
    shareable::<Inspection>();
    shareable::<Semaphore>();
    shareable::<SharedLimit>();
    shareable::<Election>();
    shareable::<Leadership>();
    shareable::<Watch<Option<Leader>>>();
    shareable::<Watch<CandidateState>>();
    shareable::<Schedule>();
    shareable::<Slot>();
    shareable::<ScheduleInspection>();
    shareable::<OnceCell>();
    shareable::<RateLimiter>();
    shareable::<Counter>();
    shareable::<SharedCount>();
    shareable::<IdBlocks>();
    shareable::<Barrier>();
    shareable::<DoubleBarrier>();
    shareable::<Inside>();
    shareable::<Admission>();
    shareable::<Lease>();
    shareable::<Hold>();
    shareable::<Txn<'static>>();
    shareable::<FencingToken>();
    shareable::<Error>();
    shareable::<ReleaseError>();
    shareable::<TxnError>();
}

#[test]
fn what_threads_use_may_be_shared_between_them() {
    use crate::blocking;
    shareable::<blocking::ConnectionManager>();
    shareable::<blocking::Mutex>();
    shareable::<blocking::MutexGuard>();
    shareable::<blocking::ReentrantMutex>();
    shareable::<blocking::RwLock>();
    shareable::<blocking::ReadGuard>();
    shareable::<blocking::WriteGuard>();
    shareable::<blocking::UpgradeError>();
    shareable::<blocking::Semaphore>();
    shareable::<blocking::Lease>();
    shareable::<blocking::Election>();
    shareable::<blocking::Leadership>();
    shareable::<blocking::Watch<Option<Leader>>>();
    shareable::<blocking::Blocking<Slot>>();
    shareable::<blocking::HoldEvents>();
    shareable::<blocking::MultiLock>();
    shareable::<blocking::MultiLockGuard>();
    shareable::<blocking::Txn<'static>>();
}

/// Thousands may wait, each in a task that is at least as large as these.
#[test]
fn a_task_that_takes_a_mutex_and_gives_it_back_is_small() {
    fn size<A, F: Future>(_: impl Fn(A) -> F) -> usize {
        size_of::<F>()
    }
    let acquire = size(|mutex: &'static Mutex| mutex.acquire());
    assert!(acquire <= 768, "{acquire}");
    assert!(size(MutexGuard::release) <= 768);
}

#[test]
fn all_futures_may_be_spawned() {
    spawnable(|mutex: &'static Mutex| Box::new(mutex.acquire()));
    spawnable(|mutex: &'static Mutex| Box::new(mutex.try_acquire()));
    spawnable(|mutex: &'static Mutex| Box::new(mutex.acquire_timeout(std::time::Duration::ZERO)));
    spawnable(|guard: &'static MutexGuard| Box::new(guard.lost()));
    spawnable(|guard: &'static MutexGuard| Box::new(guard.run(std::future::ready(()))));
    spawnable(|guard: &'static MutexGuard| Box::new(guard.revoke_requested()));
    spawnable(|revoker: &'static Revoker| Box::new(revoker.force_release(&[])));
    spawnable(|guard: &'static MutexGuard| Box::new(guard.txn().commit()));
    spawnable(|manager: &'static ConnectionManager| Box::new(manager.shutdown()));
    spawnable(|mutex: &'static ReentrantMutex| {
        Box::new(async {
            let owner = Owner::new("");
            drop(mutex.acquire(&owner).await);
        })
    });
    spawnable(|lock: &'static RwLock| Box::new(lock.read()));
    spawnable(|lock: &'static RwLock| Box::new(lock.try_read()));
    spawnable(|lock: &'static RwLock| Box::new(lock.write()));
    spawnable(|lock: &'static RwLock| Box::new(lock.try_write()));
    fn downgrade(guard: WriteGuard) -> Box<dyn Send> {
        Box::new(guard.downgrade())
    }
    fn upgrade(guard: ReadGuard) -> Box<dyn Send> {
        Box::new(guard.try_upgrade())
    }
    let _ = (downgrade, upgrade);
    fn seen(lock: &'static dyn ZooKeeperLock) -> Box<dyn Send> {
        Box::new(lock.inspect())
    }
    let _ = seen;
    spawnable(|lock: &'static RwLock| Box::new(lock.inspect()));
    spawnable(|semaphore: &'static Semaphore| Box::new(semaphore.inspect()));
    spawnable(|limiter: &'static RateLimiter| Box::new(limiter.inspect()));
    fn wait(
        tickets: &'static mut (MutexTicket, WriteTicket, SemaphoreTicket, ReentrantTicket),
    ) -> Box<dyn Send> {
        Box::new(async {
            drop(tickets.0.wait().await);
            drop(tickets.1.wait().await);
            drop(tickets.2.wait().await);
            drop(tickets.3.refresh().await);
        })
    }
    let _ = wait;
    fn release(guard: MutexGuard) -> Box<dyn Send> {
        Box::new(guard.release())
    }
    let _ = release;
}

#[test]
fn all_futures_of_other_recipes_may_be_spawned() {
    spawnable(|semaphore: &'static Semaphore| Box::new(semaphore.acquire()));
    spawnable(|semaphore: &'static Semaphore| Box::new(semaphore.acquire_many(2)));
    spawnable(|semaphore: &'static Semaphore| {
        Box::new(semaphore.acquire_many_timeout(2, std::time::Duration::ZERO))
    });
    spawnable(|semaphore: &'static Semaphore| Box::new(semaphore.try_acquire_many(2)));
    spawnable(|semaphore: &'static Semaphore| Box::new(semaphore.available()));
    spawnable(|limit: &'static SharedLimit| Box::new(limit.set(2)));
    spawnable(|election: &'static Election| Box::new(election.campaign()));
    spawnable(|election: &'static Election| Box::new(election.observe()));
    spawnable(|election: &'static Election| {
        Box::new(election.lead(async |leadership| {
            leadership.lost().await;
            std::ops::ControlFlow::<()>::Continue(())
        }))
    });
    spawnable(|schedule: &'static Schedule| {
        Box::new(async {
            let slot = schedule.due().await?;
            slot.done_with("", |txn| txn.set("/a", b"", -1)).await
        })
    });
    spawnable(|cell: &'static OnceCell| Box::new(cell.get_or_init(async || Vec::new())));
    spawnable(|limiter: &'static RateLimiter| Box::new(limiter.admit_many(2)));
    spawnable(|limiter: &'static RateLimiter| Box::new(limiter.try_admit()));
}
