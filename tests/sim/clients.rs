//! The client processes: some tasks each, which take locks, work under them, and give them back or up.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use lockkeeper::{ConnectionManager, Error, Mutex, Owner, ReentrantMutex, RetryPolicy};
use tokio::time::sleep;

use crate::dice::Dice;
use crate::host::{Process, SimulatedHost};
use crate::oracle::{Guard, Oracle};
use crate::plan::Plan;
use crate::wire::Network;
use crate::world::World;

/// What one worker goes by.
struct Worker {
    name: String,
    world: World,
    oracle: Oracle,
    process: Arc<Process>,
    manager: ConnectionManager,
    plan: Plan,
    dice: Dice,
    owner: Owner,
}

/// Runs one process until its workers have had their last lock; returns its manager.
pub(crate) async fn run(
    world: World,
    oracle: Oracle,
    process: Arc<Process>,
    mut dice: Dice,
) -> ConnectionManager {
    let plan = world.plan();
    let milliseconds = Duration::from_millis;
    let pause = milliseconds(dice.between(10, 200));
    let manager = ConnectionManager::builder("simulated:1")
        .session_timeout(milliseconds(plan.timeout))
        .tick_time(milliseconds(plan.tick))
        .keep_confirmed(milliseconds(dice.pick(&[0, plan.timeout / 2, 60_000])))
        .connect_deadline(Duration::from_secs(86_400))
        .retry(RetryPolicy::exponential(pause, pause * 8))
        .connect_over(
            Arc::new(Network { world: world.clone(), process: Arc::clone(&process) }),
            Arc::new(SimulatedHost(Arc::clone(&process))),
        )
        .await
        .expect("a connection");
    let workers: Vec<_> = (0..plan.workers)
        .map(|number| {
            let name = format!("p{}.{number}", process.number);
            let worker = Worker {
                owner: Owner::new(&name),
                name,
                world: world.clone(),
                oracle: oracle.clone(),
                process: Arc::clone(&process),
                manager: manager.clone(),
                plan: plan.clone(),
                dice: dice.fork(),
            };
            process.run(worker.work())
        })
        .collect();
    for worker in workers {
        if let Err(panic) = worker.await {
            oracle.breach(&world, format!("a worker ended: {panic}"));
        }
    }
    manager
}

impl Worker {
    async fn work(mut self) {
        while !self.world.is_healing() {
            self.idle(self.plan.timeout / 10).await;
            self.visit().await;
        }
        // The last one, undisturbed: everyone is served.
        for lock in 0..self.plan.locks {
            let mutex = Mutex::new(&self.manager, path(lock)).expect("a path");
            match mutex.acquire_owned().await {
                Ok(guard) => self.hold(Guard::Plain(guard), lock).await,
                Err(error) => self.unexpected(&error),
            }
        }
        self.world.note(|| format!("{} is done", self.name));
    }

    async fn idle(&mut self, longest: u64) {
        sleep(Duration::from_millis(self.dice.between(0, longest))).await;
    }

    fn unexpected(&self, error: &Error) {
        self.oracle.breach(&self.world, format!("{}: {error}", self.name));
    }

    /// One attempt, cancelled at some point or not.
    async fn visit(&mut self) {
        let lock = self.dice.index(self.plan.locks);
        let attempt = self.dice.index(10);
        let patience = Duration::from_millis(self.dice.between(0, self.plan.timeout));
        let polls = if self.dice.percent(20) { self.dice.between(1, 12) } else { u64::MAX };
        let limit =
            if self.dice.percent(10) { self.dice.between(1, self.plan.timeout) } else { u64::MAX / 4 };
        let (name, manager, owner) = (self.name.clone(), self.manager.clone(), self.owner.clone());
        self.world.note(|| format!("{name} tries lock {lock} in way {attempt}"));
        let taking = async move {
            let mutex = Mutex::new(&manager, path(lock))?;
            let reentrant = ReentrantMutex::new(&manager, path(lock))?;
            let guard = match attempt {
                0..4 => Some(Guard::Plain(mutex.acquire_owned().await?)),
                4..6 => Some(Guard::Plain(mutex.acquire_owned_timeout(patience).await?)),
                6 => mutex.try_acquire_owned().await?.map(Guard::Plain),
                7 => Some(Guard::Reentrant(reentrant.acquire_owned(&owner).await?)),
                8 => Some(Guard::Reentrant(reentrant.acquire_owned_timeout(&owner, patience).await?)),
                _ => reentrant.try_acquire_owned(&owner).await?.map(Guard::Reentrant),
            };
            Ok::<_, Error>(guard)
        };
        let taking = Cancelled { future: Box::pin(taking), polls };
        match tokio::time::timeout(Duration::from_millis(limit), taking).await {
            Ok(Some(Ok(Some(guard)))) => self.hold(guard, lock).await,
            Ok(Some(Err(error))) if error.is_timeout() && (4..7).contains(&attempt) => {}
            Ok(Some(Err(error))) if error.is_timeout() && attempt > 7 => {}
            Ok(Some(Err(error))) => self.unexpected(&error),
            Ok(Some(Ok(None)) | None) | Err(_) => {}
        }
    }

    /// Works under a lock, and gives it back in one way or another.
    async fn hold(&mut self, guard: Guard, lock: usize) {
        let guard = Arc::new(guard);
        let entry = self.oracle.granted(&self.world, &self.process, &guard);
        let is_lost = {
            let mut work = pin!(self.work_under(&guard, lock));
            let mut lost = pin!(guard.lost());
            tokio::select! {
                biased;
                _ = &mut lost => true,
                () = &mut work => false,
            }
        };
        let path = guard.path().to_owned();
        if is_lost {
            self.oracle.told(&entry);
            self.world.note(|| format!("{} is told that {path} is lost", self.name));
            // It keeps the guard for a while, as someone who cleans up.
            self.idle(self.plan.timeout / 20).await;
        }
        // From here on it claims nothing.
        drop(entry);
        let Ok(guard) = Arc::try_unwrap(guard) else {
            return self.oracle.breach(&self.world, "the books kept a guard".to_owned());
        };
        let way = if self.world.is_healing() { 0 } else { self.dice.index(10) };
        self.world.note(|| format!("{} gives {path} back in way {way}", self.name));
        let polls = if way < 7 { u64::MAX } else { self.dice.between(1, 4) };
        if way == 9 {
            return drop(guard);
        }
        let release = Cancelled { future: Box::pin(guard.release()), polls };
        if let Some(Ok(())) = release.await {
            self.oracle.released(&self.world, &path);
        }
    }

    async fn work_under(&mut self, guard: &Guard, lock: usize) {
        let steps = if self.world.is_healing() { 1 } else { self.dice.between(0, 4) };
        let longest = match self.dice.index(8) {
            _ if self.world.is_healing() => 10,
            0 => self.plan.timeout / 2,
            1 => self.plan.timeout,
            _ => self.plan.timeout / 20,
        };
        for _ in 0..steps {
            self.idle(longest).await;
            let token = guard.fencing_token().as_u64().to_string().into_bytes();
            let register = format!("/registers/{lock}").parse().expect("a path");
            if self.dice.percent(50) {
                let committed = guard.txn().set(register, token, -1).commit().await;
                self.world.note(|| format!("{} wrote: {committed:?}", self.name));
            }
            if let (Guard::Reentrant(_), true) = (guard, self.dice.percent(50)) {
                let mutex = ReentrantMutex::new(&self.manager, path(lock)).expect("a path");
                if let Ok(Some(again)) = mutex.try_acquire_owned(&self.owner).await {
                    if again.fencing_token() != guard.fencing_token() {
                        self.oracle
                            .breach(&self.world, "promise 3: a second hold has its own token".to_owned());
                    }
                    drop(again);
                }
            }
        }
    }
}

fn path(lock: usize) -> String {
    format!("/locks/{lock}")
}

/// A future that is dropped after some polls; `None` then.
struct Cancelled<F> {
    future: Pin<Box<F>>,
    polls: u64,
}

impl<F: Future> Future for Cancelled<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.polls == 0 {
            return Poll::Ready(None);
        }
        self.polls -= 1;
        let polled = self.future.as_mut().poll(context);
        if self.polls == 0 && polled.is_pending() {
            return Poll::Ready(None);
        }
        polled.map(Some)
    }
}
