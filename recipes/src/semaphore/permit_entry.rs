//! How a process takes permits for all of its waiting tasks, and notices that other contenders need some.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use lockkeeper_core::{
    Changes, ConnectionManager, Deadline, Error, Hold, LockQueue, NodeMonitor, Read, ReadResult, count_of,
};
use tokio::sync::Notify;
use tracing::debug;

use super::decide::{ContentionSeen, contention};
use super::handle::Semaphore;
use super::limit::PermitLimit;
use super::own_contenders::OwnContenders;
use crate::lock::at_head::{self, HeadLimit, NotTaken};
use crate::sharing::{CommonWatch, EntrySlot, SharedEntry};

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
            let taken = tokio::select! {
                biased;
                () = slot.needless() => return,
                taken = take_one(&semaphore, &own) => taken,
            };
            match taken {
                Ok(hold) => slot.grant(hold),
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

/// Waits for one permit, as a contender whose name is known.
async fn take_one(semaphore: &Semaphore, own: &Arc<OwnContenders>) -> Result<Hold, Error> {
    let request = semaphore.request(1);
    loop {
        let mut entering = own.enter();
        let has_left = Arc::new(Notify::new());
        let report = Arc::clone(&has_left);
        let queue = semaphore.queue().with_position_report(move |position| {
            if position.is_none() {
                report.notify_one();
            }
        });
        let mut ticket = queue.enqueue(Deadline::never()).await?;
        entering.entered(ticket.name());
        let head = tokio::select! {
            biased;
            head = ticket.wait(Deadline::never()) => head?,
            // It would get another name.
            () = has_left.notified() => continue,
        };
        match at_head::decide(&request, &mut Some(head), HeadLimit::wait(Deadline::never())).await {
            Ok(hold) => return Ok(hold),
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
        // The first contender in the way, and when it has waited for too long.
        let mut seen: Option<(String, Deadline)> = None;
        loop {
            let (results, mut changes) = self.watched.watch_reads(&self.monitor).await?;
            tokio::select! {
                biased;
                () = self.own.settled() => {}
                () = changes.any() => continue,
            }
            let other = self.other(&results);
            let is_looked_for = other.is_some() || results.len() > 1;
            let in_use = if is_looked_for { self.in_use().await } else { Some(0) };
            seen = other.map(|name| match seen.take() {
                Some((before, until)) if before == name => (before, until),
                _ => (name, Deadline::after(patience)),
            });
            let has_waited = seen.as_ref().map(|(_, until)| until.has_passed());
            match contention(has_waited, in_use, self.limit(&results)) {
                ContentionSeen::None => self.wait_alone(&mut changes, None).await,
                ContentionSeen::Transient => {
                    let until = seen.as_ref().map(|(_, until)| *until);
                    self.wait_alone(&mut changes, until).await;
                }
                ContentionSeen::Waits => {
                    self.watch.mark_contended();
                    Deadline::after(patience).passed().await;
                }
                ContentionSeen::Exceeded => {
                    self.watch.mark_exceeded();
                    Deadline::after(patience).passed().await;
                }
            }
        }
    }

    /// No contender waits for what this process has, until something changes.
    async fn wait_alone(&self, changes: &mut Changes, until: Option<Deadline>) {
        self.watch.set_alone(true);
        tokio::select! {
            biased;
            () = changes.any() => {}
            () = until.unwrap_or_else(Deadline::never).passed() => {}
        }
        self.watch.set_alone(false);
    }

    /// The first contender in the list that is not the entry of this process.
    fn other(&self, results: &[ReadResult]) -> Option<String> {
        let Some(ReadResult::Children { names, .. }) = results.first() else { return None };
        names.iter().filter(|name| !self.own.has(name)).min().cloned()
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
