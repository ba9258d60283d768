use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lockkeeper::{ConnectionPool, Error, Owner};
use lockkeeper_test_recipes::{AcquireMode, Claim, Grant, Granted, Share, SharedLocks, Target};
use tokio::time::sleep;

use super::cancelled::Cancelled;
use super::is_full;
use crate::environment::Process;
use crate::locks::Lock;
use crate::oracle::Oracle;
use crate::plan::Plan;
use crate::rng::Rng;
use crate::world::World;

/// One task of a process, and its settings.
pub(super) struct Worker {
    pub(super) name: String,
    pub(super) world: World,
    pub(super) oracle: Oracle,
    pub(super) process: Arc<Process>,
    pub(super) pool: ConnectionPool,
    pub(super) shared: SharedLocks,
    /// Its manager is being shut down.
    pub(super) is_closing: Arc<AtomicBool>,
    pub(super) plan: Plan,
    pub(super) rng: Rng,
    pub(super) owner: Owner,
}

impl Worker {
    pub(super) async fn work(mut self) {
        while !self.world.is_healing() {
            self.idle(self.plan.timeout / 10).await;
            self.visit().await;
            if self.is_closing.load(Ordering::Relaxed) {
                return;
            }
        }
        // The last attempt, without cancellation: every worker is granted a lock.
        for lock in self.plan.locks.clone() {
            let adapter = lock.adapter(&mut self.rng);
            loop {
                match adapter.take(self.target(lock), AcquireMode::Wait).await {
                    Ok(Some(grant)) => self.hold(grant, lock).await,
                    Ok(None) => self.oracle.breach(&self.world, format!("{}: not served", self.name)),
                    Err(error) if self.is_full(&error) => {
                        // The others give their nodes back.
                        self.idle(self.plan.timeout / 20).await;
                        continue;
                    }
                    Err(error) => self.unexpected(&error),
                }
                break;
            }
        }
        self.world.note(|| format!("{} is done", self.name));
    }

    async fn idle(&mut self, longest: u64) {
        sleep(Duration::from_millis(self.rng.between(0, longest))).await;
    }

    fn target(&mut self, lock: Lock) -> Target {
        let mut rng = self.rng.fork();
        let path = lock.path();
        let mut target =
            Target::new(self.pool.for_path(&path), &path).with_draws(move |count| rng.index(count));
        target.owner = Some(self.owner.clone());
        target.shared = self.shared.clone();
        target
    }

    /// Whether the budget of the session has no room for the nodes of a call.
    fn is_full(&self, error: &Error) -> bool {
        let is_full = self.plan.room.is_some() && is_full(error);
        if is_full {
            self.world.note(|| format!("{}: {error}", self.name));
            self.oracle.refused();
        }
        is_full
    }

    fn unexpected(&self, error: &Error) {
        if matches!(error, Error::Closed) && self.is_closing.load(Ordering::Relaxed) {
            return;
        }
        self.oracle.breach(&self.world, format!("{}: {error}", self.name));
    }

    /// One attempt, cancelled at some point or not.
    async fn visit(&mut self) {
        let lock = self.plan.locks[self.rng.index(self.plan.locks.len())];
        let adapter = lock.adapter(&mut self.rng);
        let patience = Duration::from_millis(self.rng.between(0, self.plan.timeout));
        let mode = match self.rng.index(10) {
            0..5 => AcquireMode::Wait,
            5..8 => AcquireMode::WaitAtMost(patience),
            _ => AcquireMode::Try,
        };
        let polls = if self.rng.percent(20) { self.rng.between(1, 12) } else { u64::MAX };
        let limit = if self.rng.percent(10) { self.rng.between(1, self.plan.timeout) } else { u64::MAX / 4 };
        self.world.note(|| format!("{} tries {lock:?}: {mode:?}", self.name));
        let taking = Cancelled::after(polls, adapter.take(self.target(lock), mode));
        match tokio::time::timeout(Duration::from_millis(limit), taking).await {
            Ok(Some(Ok(Some(grant)))) => self.hold(grant, lock).await,
            Ok(Some(Err(error))) if error.is_timeout() && mode != AcquireMode::Wait => {}
            Ok(Some(Err(error))) if self.is_full(&error) => {}
            Ok(Some(Err(error))) => self.unexpected(&error),
            Ok(Some(Ok(None)) | None) | Err(_) => {}
        }
    }

    /// Works under a lock, and releases it in one of several ways.
    async fn hold(&mut self, grant: Granted, lock: Lock) {
        let grant = Arc::new(grant);
        let entry = self.oracle.granted(&self.world, &self.process, &grant);
        let claims = grant.claims();
        // An owner may acquire its hold again, and downgrade it.
        let is_own = |claim: &Claim| {
            !claim.ignored.is_empty() || claim.is_inherited && !matches!(claim.share, Share::Permits { .. })
        };
        if !claims.iter().any(is_own) && self.is_closing.load(Ordering::Relaxed) {
            let text = format!("{} was granted {claims:?} after the shutdown had begun", self.name);
            self.oracle.breach(&self.world, text);
        }
        if let Some(monitor) = grant.monitor().filter(|_| self.rng.percent(30)) {
            // The worker keeps watching for a while after the release: a loss must not be reported then.
            let limit = Duration::from_millis(self.plan.timeout);
            self.process.run(async move { tokio::time::timeout(limit, monitor.lost()).await.is_ok() });
        }
        let is_lost = {
            let mut work = pin!(self.work_under(&**grant, lock));
            let mut lost = pin!(grant.lost());
            tokio::select! {
                biased;
                () = &mut lost => true,
                () = &mut work => false,
            }
        };
        if is_lost {
            self.oracle.lost(&entry);
            self.world.note(|| format!("{} observes the loss of {claims:?}", self.name));
            // The worker keeps the guard for a while, as during a cleanup.
            self.idle(self.plan.timeout / 20).await;
        }
        // From here on the worker claims no hold.
        drop(entry);
        let Ok(grant) = Arc::try_unwrap(grant) else {
            return self.oracle.breach(&self.world, "the record kept a guard".to_owned());
        };
        let way = if self.world.is_healing() { 0 } else { self.rng.index(10) };
        self.world.note(|| format!("{} gives {claims:?} back in way {way}", self.name));
        let polls = if way < 7 { u64::MAX } else { self.rng.between(1, 4) };
        if way == 9 {
            return drop(grant);
        }
        let may_outlive = grant.may_outlive_release();
        if let (Some(Ok(())), false) = (Cancelled::after(polls, grant.release()).await, may_outlive) {
            self.oracle.released(&self.world, &claims);
        }
    }

    async fn work_under(&mut self, grant: &dyn Grant, lock: Lock) {
        let steps = if self.world.is_healing() { 1 } else { self.rng.between(0, 4) };
        let longest = match self.rng.index(8) {
            _ if self.world.is_healing() => 10,
            0 => self.plan.timeout / 2,
            1 => self.plan.timeout,
            _ => self.plan.timeout / 20,
        };
        for _ in 0..steps {
            self.idle(longest).await;
            if let (Some(txn), true) = (grant.txn(), self.rng.percent(50)) {
                let token = grant.claims().iter().map(|claim| claim.token).max();
                let token = token.expect("a claim").to_string();
                let committed = txn.set(lock.register(), token, -1).commit().await;
                self.world.note(|| format!("{} wrote: {committed:?}", self.name));
            }
            if self.rng.percent(50)
                && let Err(wrong) = grant.check_owner(self.target(lock)).await
            {
                self.oracle.breach(&self.world, wrong);
            }
        }
    }
}
