//! How a process takes permits for all of its waiting tasks, and notices that other contenders need some.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use lockkeeper_core::{
    Changes, ConnectionManager, Deadline, Error, Hold, LockQueue, NodeMonitor, NodeName, Read, ReadResult,
    count_of,
};
use tracing::debug;

use super::decide::{ContentionSeen, contention};
use super::handle::Semaphore;
use super::limit::PermitLimit;
use super::own_contenders::OwnContenders;
use crate::lock::at_head::{self, HeadLimit, NotTaken};
use crate::sharing::{CommonWatch, EntrySlot, SharedEntry};

/// While more permits are in use than there may be, no watch says when enough of them have ended.
const EXCEEDED_PAUSE: Duration = Duration::from_secs(1);

/// The entry of a process in the queue of a semaphore.
pub(super) struct PermitEntry {
    semaphore: Semaphore,
    /// The queue, and the node of a shared limit, to be watched.
    watched: LockQueue,
    /// The time for which a contender that may take free permits is not waited for.
    patience: Duration,
    own: Arc<OwnContenders>,
}

impl PermitEntry {
    /// `semaphore` keeps no nodes itself.
    pub(super) fn new(semaphore: Semaphore, patience: Duration) -> Result<Self, Error> {
        let mut reads = vec![Read::Children(semaphore.queue.directory().clone())];
        if let PermitLimit::Shared(shared) = &semaphore.limit {
            reads.push(Read::Data(shared.path().clone()));
        }
        let watched = semaphore.queue.clone().with_reads(&reads)?;
        Ok(Self { semaphore, watched, patience, own: Arc::default() })
    }
}

impl SharedEntry for PermitEntry {
    fn manager(&self) -> &ConnectionManager {
        &self.semaphore.manager
    }

    fn enter(&self, slot: EntrySlot) -> BoxFuture<'static, ()> {
        let (semaphore, own) = (self.semaphore.clone(), Arc::clone(&self.own));
        Box::pin(async move {
            match take_one(&semaphore, &own, &slot).await {
                Ok(Some(hold)) => slot.grant(hold),
                Ok(None) => {}
                Err(error) => slot.fail(error),
            }
        })
    }

    fn watch(&self, watch: CommonWatch, monitor: NodeMonitor) -> BoxFuture<'static, ()> {
        let (semaphore, own) = (self.semaphore.clone(), Arc::clone(&self.own));
        let watcher = PermitWatcher { semaphore, watched: self.watched.clone(), own, watch, monitor };
        let patience = self.patience;
        Box::pin(async move {
            if let Err(error) = watcher.run(patience).await {
                debug!(%error, "the contenders for permits are not watched any more");
            }
        })
    }
}

/// Waits for one permit, as a contender whose name is known. `None` once no task waits any more: not before
/// the name is known, or the node would count as that of another contender until it is deleted.
async fn take_one(
    semaphore: &Semaphore,
    own: &Arc<OwnContenders>,
    slot: &EntrySlot,
) -> Result<Option<Hold>, Error> {
    let request = semaphore.request(1);
    loop {
        let mut entering = own.enter();
        let mut ticket = semaphore.queue().enqueue(Deadline::never()).await?;
        entering.entered(ticket.name());
        let head = tokio::select! {
            biased;
            () = slot.needless() => return Ok(None),
            // Once its node is deleted by hand it has another name, and counts as another contender.
            head = ticket.wait(Deadline::never()) => head?,
        };
        let mut head = Some(head);
        let decided = tokio::select! {
            biased;
            () = slot.needless() => return Ok(None),
            decided = at_head::decide(&request, &mut head, HeadLimit::wait(Deadline::never())) => decided,
        };
        match decided {
            Ok(hold) => return Ok(Some(hold)),
            Err(NotTaken::Restart | NotTaken::NotNow(_)) => {}
            Err(NotTaken::Failed(error)) => return Err(error),
        }
    }
}

/// Watches the queue, as long as the process has permits of one session.
struct PermitWatcher {
    semaphore: Semaphore,
    watched: LockQueue,
    own: Arc<OwnContenders>,
    watch: CommonWatch,
    monitor: NodeMonitor,
}

impl PermitWatcher {
    async fn run(&self, patience: Duration) -> Result<(), Error> {
        // The contenders in the way, and when each has waited for too long.
        let mut seen: BTreeMap<String, Deadline> = BTreeMap::new();
        loop {
            let (results, mut changes) = self.watched.watch_reads(&self.monitor).await?;
            tokio::select! {
                biased;
                () = self.own.settled() => {}
                () = changes.any() => continue,
            }
            let others = self.others(&results);
            seen.retain(|name, _| others.contains(name.as_str()));
            for name in others {
                seen.entry(name.to_owned()).or_insert_with(|| Deadline::after(patience));
            }
            let is_looked_for = !seen.is_empty() || results.len() > 1;
            let in_use = if is_looked_for { self.in_use().await } else { Some(0) };
            let has_waited = (!seen.is_empty()).then(|| seen.values().any(|until| until.has_passed()));
            match contention(has_waited, in_use, self.limit(&results)) {
                ContentionSeen::None => self.wait_alone(&mut changes, Deadline::never()).await,
                ContentionSeen::Transient => {
                    let until = seen.values().copied().fold(Deadline::never(), Deadline::earlier);
                    self.wait_alone(&mut changes, until).await;
                }
                ContentionSeen::Waits => {
                    self.watch.mark_contended();
                    Deadline::after(patience).passed().await;
                    changes.any().await;
                }
                ContentionSeen::Exceeded => {
                    self.watch.mark_exceeded();
                    Deadline::after(patience.max(EXCEEDED_PAUSE)).passed().await;
                }
            }
        }
    }

    /// No contender waits for what this process has, until something changes.
    async fn wait_alone(&self, changes: &mut Changes, until: Deadline) {
        self.watch.set_alone(true);
        tokio::select! {
            biased;
            () = changes.any() => {}
            () = until.passed() => {}
        }
        self.watch.set_alone(false);
    }

    /// The contenders in the list that are not the entry of this process.
    fn others<'a>(&self, results: &'a [ReadResult]) -> BTreeSet<&'a str> {
        let Some(ReadResult::Children { names, .. }) = results.first() else { return BTreeSet::new() };
        let contenders = names.iter().filter(|name| NodeName::parse(name).is_some());
        contenders.filter(|name| !self.own.has(name)).map(String::as_str).collect()
    }

    /// The number of permits in use. `None` if it is not known.
    async fn in_use(&self) -> Option<u32> {
        let leases = self.semaphore.manager.znodes().children(&self.semaphore.leases).await.ok()?;
        Some(leases.map_or(0, |leases| count_of(leases.len())))
    }

    /// The limit. `None` if the node of a shared limit has none.
    fn limit(&self, results: &[ReadResult]) -> Option<u32> {
        match (&self.semaphore.limit, results.get(1)) {
            (PermitLimit::Fixed(fixed), _) => Some(fixed.permits()),
            (PermitLimit::Shared(shared), Some(ReadResult::Data { data, .. })) => shared.decode(data).ok(),
            (PermitLimit::Shared(_), _) => None,
        }
    }
}
