use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use lockkeeper_core::Zxid;
use lockkeeper_core::{
    ConnectionManager, Deadline, Error, Phase, Snapshot, ViewState, count_missing_instance,
};
use parking_lot::Mutex;

use super::failures::{FailurePolicy, Failures};
use super::instance::{Instance, NoPayload};
use super::service::ServiceView;
use super::strategy::{Chooser, Strategy};

/// Chooses one instance of a service after the other: see
/// [`Discovery::balancer`](crate::Discovery::balancer).
///
/// A clone is a handle to the same balancer.
///
/// # Promise
///
/// A chosen instance is enabled in the latest [snapshot](crate::view::View::snapshot) of the service. It
/// may be gone by now: a process that was killed stays in the snapshot until its session ends. So try a
/// call that failed again, on another instance, if it may be done twice; and
/// [report](Self::report_failure) the failure, so that the instance is not chosen for a while.
///
/// # Session loss
///
/// While there is no connection, the balancer chooses from the last snapshot.
pub struct Balancer<P = NoPayload> {
    inner: Arc<Inner<P>>,
}

struct Inner<P> {
    manager: ConnectionManager,
    view: ServiceView<P>,
    chooser: Chooser,
    policy: FailurePolicy,
    failures: Mutex<Failures>,
    /// Whether there may be any.
    has_failures: AtomicBool,
    candidates: ArcSwap<Candidates<P>>,
}

/// The enabled instances of one snapshot, sorted by node.
struct Candidates<P> {
    /// `None` before the first.
    revision: Option<u64>,
    list: Vec<Candidate<P>>,
}

struct Candidate<P> {
    node: String,
    czxid: Zxid,
    instance: Arc<Instance<P>>,
}

impl<P> Candidates<P> {
    fn of(snapshot: &Snapshot<Arc<Instance<P>>>) -> Self {
        let candidates = snapshot.children("").filter_map(|(name, node)| {
            let instance = node.value().ok().filter(|instance| instance.is_enabled())?;
            let (node, czxid) = (name.to_owned(), node.stat().czxid);
            Some(Candidate { node, czxid, instance: Arc::clone(instance) })
        });
        let mut list: Vec<Candidate<P>> = candidates.collect();
        list.sort_unstable_by(|one, other| one.node.cmp(&other.node));
        Self { revision: Some(snapshot.revision()), list }
    }
}

impl<P> Balancer<P> {
    pub(super) fn new(
        manager: &ConnectionManager,
        view: ServiceView<P>,
        strategy: Strategy,
        policy: FailurePolicy,
    ) -> Self {
        let inner = Inner {
            manager: manager.clone(),
            view,
            chooser: Chooser::new(strategy),
            policy,
            failures: Mutex::default(),
            has_failures: AtomicBool::new(false),
            candidates: ArcSwap::from_pointee(Candidates { revision: None, list: Vec::new() }),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The view of the service that the balancer chooses from.
    #[must_use]
    pub fn view(&self) -> &ServiceView<P> {
        &self.inner.view
    }

    /// The next instance by the strategy, of those that are enabled and have not
    /// [failed](Self::report_failure) lately. If all have failed lately, any of them. `None` if none is
    /// enabled, and while the first load of the view is not finished.
    ///
    /// # Cost
    ///
    /// Sends nothing, and copies nothing. It locks only for [`Strategy::Sticky`], and while an instance has
    /// failed.
    #[must_use]
    pub fn choose(&self) -> Option<Arc<Instance<P>>> {
        let chosen = self.inner.choose();
        if chosen.is_none() {
            count_missing_instance();
        }
        chosen
    }

    /// As [`choose`](Self::choose), and waits for an instance for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], which says in which state the view is; [`Error::Closed`] after a shutdown.
    ///
    /// # Session loss
    ///
    /// The wait continues in the next session.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: nothing is chosen.
    pub async fn choose_timeout(&self, timeout: Duration) -> Result<Arc<Instance<P>>, Error> {
        let limit = Deadline::after(timeout);
        // Before the first look: no change is missed.
        let mut changes = self.inner.view.changes();
        loop {
            if let Some(instance) = self.inner.choose() {
                return Ok(instance);
            }
            if self.inner.view.state() == ViewState::Closed {
                return Err(Error::Closed);
            }
            tokio::select! {
                biased;
                _ = changes.next() => {}
                () = limit.passed() => break,
            }
        }
        count_missing_instance();
        let view = &self.inner.view;
        let phase = format!("waiting for an enabled instance, in a view that is {}", view.state());
        let path = self.inner.manager.whole_path(view.path());
        Err(Error::Timeout { phase: Phase::Recipe(phase.into()), path, waited: limit.waited() })
    }

    /// Reports that a call of this instance failed: by the [policy](FailurePolicy), it is not chosen for a
    /// while. Sends nothing: other processes learn nothing of it.
    ///
    /// An instance that registers anew has not failed.
    pub fn report_failure(&self, instance: &Instance<P>) {
        self.inner.report_failure(instance.id());
    }
}

impl<P> Inner<P> {
    /// Those of the latest snapshot.
    fn candidates(&self) -> Guard<Arc<Candidates<P>>> {
        let snapshot = self.view.snapshot();
        let known = self.candidates.load();
        if known.revision == Some(snapshot.revision()) {
            return known;
        }
        let fresh = Arc::new(Candidates::of(&snapshot));
        // A slower thread may store older ones behind this. The next call notices.
        self.candidates.store(Arc::clone(&fresh));
        Guard::from_inner(fresh)
    }

    fn choose(&self) -> Option<Arc<Instance<P>>> {
        let candidates = self.candidates();
        let candidate = match self.has_failures.load(Ordering::Relaxed) {
            false => {
                let index = self.chooser.choose(&candidates.list, |candidate| &candidate.node)?;
                candidates.list.get(index)?
            }
            true => {
                let up = self.without_failures(&candidates.list);
                let index = self.chooser.choose(&up, |candidate| &candidate.node)?;
                up.get(index).copied()?
            }
        };
        Some(Arc::clone(&candidate.instance))
    }

    /// The candidates that have not failed lately; all of them if each has.
    fn without_failures<'c>(&self, candidates: &'c [Candidate<P>]) -> Vec<&'c Candidate<P>> {
        let mut failures = self.failures.lock();
        if failures.forget(self.manager.now(), self.policy) {
            self.has_failures.store(false, Ordering::Relaxed);
        }
        let is_up = |candidate: &&Candidate<P>| {
            !failures.is_down(candidate.instance.id(), candidate.czxid, self.policy)
        };
        let up: Vec<_> = candidates.iter().filter(is_up).collect();
        if up.is_empty() { candidates.iter().collect() } else { up }
    }

    fn report_failure(&self, id: &str) {
        let candidates = self.candidates();
        // An instance that is gone is not chosen anyway.
        let Some(failed) = candidates.list.iter().find(|of| of.instance.id() == id) else { return };
        let mut failures = self.failures.lock();
        failures.report(id, failed.czxid, self.manager.now(), self.policy);
        self.has_failures.store(true, Ordering::Relaxed);
    }
}

impl<P> Clone for Balancer<P> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<P> Debug for Balancer<P> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Balancer")
            .field("chooser", &self.inner.chooser)
            .field("view", &self.inner.view)
            .finish_non_exhaustive()
    }
}
