//! Takes: one look for all takers of a process, and one wait.

use std::time::Duration;

use lockkeeper_core::{Deadline, Error, HoldExt, Phase, Stat, ZnodePath};
use tracing::debug;

use super::claim::ClaimTry;
use super::handle::WorkQueue;
use super::item::WorkItem;
use super::name::ItemName;
use super::shared::FreedItem;
use super::worker::QueueWorker;
use crate::lock::at_head::NotTaken;
use crate::value::SharedData;

/// The longest sleep between two looks at the estimated clock of the servers.
const SLEEP_MAX: Duration = Duration::from_secs(60);

/// The pause before a read is sent again.
pub(super) const PAUSE: Duration = Duration::from_millis(50);

impl<T: SharedData> WorkQueue<T> {
    /// Waits for an item that is free, and claims it, without a limit of time.
    ///
    /// # Errors
    ///
    /// [`Unreadable`](super::WorkQueueError::Unreadable) if the data of the first free item is no `T`: this
    /// process leaves that item alone for a minute, and takes others. [`Error::Refused`] if the server
    /// refuses a node (access list, quota), and [`Error::Closed`] after a shutdown has begun.
    ///
    /// # Session loss
    ///
    /// Goes on in the next session.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a dropped call leaves no claim, and the item that it was about to claim is free. One call
    /// looks at the queue for all calls of the manager, so poll a call until its end, or drop it: calls that
    /// wait behind one that nobody polls get no item until it is polled or dropped.
    pub async fn take(&self) -> Result<WorkItem<T>, Error> {
        self.take_by(Deadline::never()).await
    }

    /// As [`take`](Self::take), for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`]. Otherwise as [`take`](Self::take).
    ///
    /// # Session loss
    ///
    /// As [`take`](Self::take).
    ///
    /// # Cancel safety
    ///
    /// As [`take`](Self::take).
    pub async fn take_timeout(&self, timeout: Duration) -> Result<WorkItem<T>, Error> {
        self.take_by(Deadline::after(timeout)).await
    }

    /// Takes an item if one is free now.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] if there was no connection or no answer within the manager's operation timeout.
    /// Otherwise as [`take`](Self::take).
    ///
    /// # Session loss
    ///
    /// As [`take`](Self::take).
    ///
    /// # Cancel safety
    ///
    /// As [`take`](Self::take).
    pub async fn try_take(&self) -> Result<Option<WorkItem<T>>, Error> {
        self.run(Deadline::after(self.manager().operation_timeout()), false).await
    }

    async fn take_by(&self, deadline: Deadline) -> Result<WorkItem<T>, Error> {
        if deadline.is_immediate() {
            return self.try_take().await?.ok_or_else(|| self.timeout_error(deadline));
        }
        self.run(deadline, true).await?.ok_or_else(|| self.timeout_error(deadline))
    }

    pub(super) fn timeout_error(&self, deadline: Deadline) -> Error {
        Error::Timeout { phase: waiting(), path: self.whole_path(), waited: deadline.waited() }
    }

    async fn run(&self, deadline: Deadline, waits: bool) -> Result<Option<WorkItem<T>>, Error> {
        let taken = async {
            loop {
                let worker = match self.worker(deadline).await {
                    Ok(worker) => worker,
                    // The end of the call is the deadline, and not that of one request.
                    Err(error) if is_passing(&error) && waits && !deadline.has_passed() => {
                        debug!(path = %self.path, %error, "creating a worker again");
                        tokio::time::sleep(PAUSE).await;
                        continue;
                    }
                    Err(error) => return Err(error),
                };
                match self.take_as(worker, deadline, waits).await {
                    Ok(item) => return Ok(Some(item)),
                    Err(NotTaken::Restart) if !deadline.has_passed() => {
                        // Whatever ended the worker may have replaced the directories as well.
                        self.shared.candidates.lock().forget_lists();
                        self.shared.read_ahead.forget();
                    }
                    Err(NotTaken::Restart) => return Err(self.timeout_error(deadline)),
                    Err(NotTaken::NotNow(_)) => return Ok(None),
                    Err(NotTaken::Failed(error)) => return Err(error),
                }
            }
        };
        tokio::select! {
            biased;
            () = self.manager().closing() => Err(Error::Closed),
            taken = taken => taken,
        }
    }

    async fn take_as(
        &self,
        mut worker: QueueWorker,
        deadline: Deadline,
        waits: bool,
    ) -> Result<WorkItem<T>, NotTaken> {
        loop {
            let item = match self.next_item(&worker, deadline, waits).await {
                Ok(Some(item)) => item,
                Ok(None) | Err(NotTaken::NotNow(_)) => {
                    self.park(worker);
                    return Err(NotTaken::NotNow(waiting()));
                }
                Err(error) => return Err(error),
            };
            match self.claim(&mut worker, &item, deadline).await? {
                ClaimTry::Claimed(claimed) => {
                    let claim = if self.layout.is_own() { worker.name() } else { item.as_str() };
                    self.shared.candidates.lock().taken(item.clone(), claim);
                    self.shared.read_ahead.claimed(&item);
                    // Lost before the answer to the claim: the caller never has the item.
                    if worker.hold.check().is_err() {
                        return Err(NotTaken::Restart);
                    }
                    let freed = FreedItem::of(&self.shared, item.clone());
                    return Ok(WorkItem::new(worker, &item, freed, claimed, self)?);
                }
                // Another process is at the same place of the queue.
                ClaimTry::Collision => self.shared.candidates.lock().collided(&item),
                ClaimTry::LateCollision => {
                    self.shared.candidates.lock().collided(&item);
                    self.shared.read_ahead.was_late();
                }
                ClaimTry::Next => {}
            }
        }
    }

    /// The next item to try. The caller that has the lock lists for all others, and waits for all others.
    async fn next_item(
        &self,
        worker: &QueueWorker,
        deadline: Deadline,
        waits: bool,
    ) -> Result<Option<ItemName>, NotTaken> {
        let draw = self.shared.draw(worker.name());
        if let Some(item) = self.shared.next(draw) {
            return Ok(Some(item));
        }
        let monitor = worker.hold.monitor();
        let _turn = tokio::select! {
            biased;
            turn = self.shared.list_turn.lock() => Some(turn),
            // The one with the lock waits, maybe for long: a call that does not wait lists for itself.
            () = self.shared.until_one_waits(), if !waits => None,
            _ = monitor.lost() => return Err(NotTaken::Restart),
            () = deadline.passed() => return Err(NotTaken::NotNow(waiting())),
        };
        loop {
            // The one before has listed, or an item was given up.
            if let Some(item) = self.shared.next(draw) {
                return Ok(Some(item));
            }
            let mut changes = self.look(&monitor, deadline).await?;
            // Whatever other takers did meanwhile: an item of this list may be free.
            if let Some(item) = self.shared.candidates.lock().pop(draw) {
                return Ok(Some(item));
            }
            if !waits {
                return Ok(None);
            }
            let _waiting = self.shared.begin_wait();
            tokio::select! {
                biased;
                () = changes.any() => {}
                () = self.shared.free.announced() => {}
                () = self.next_due() => {}
                _ = monitor.lost() => return Err(NotTaken::Restart),
                () = deadline.passed() => return Err(NotTaken::NotNow(waiting())),
            }
            self.shared.candidates.lock().forget_look();
        }
    }

    /// Waits until the first of the delayed items is due.
    async fn next_due(&self) {
        let due = self.shared.candidates.lock().next_due();
        let Some(due) = due else { return std::future::pending().await };
        while let Ok(left @ 1..) = u64::try_from(due - self.now()) {
            // The clock of the servers is only estimated.
            tokio::time::sleep(Duration::from_millis(left).min(SLEEP_MAX)).await;
        }
    }

    pub(super) async fn read(
        &self,
        path: &ZnodePath,
        deadline: Deadline,
    ) -> Result<Option<(Vec<u8>, Stat)>, NotTaken> {
        loop {
            match self.manager().znodes().read(path).await {
                Ok(read) => return Ok(read),
                Err(error) if error.is_transient() && !deadline.has_passed() => {
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => return Err(NotTaken::Failed(error)),
            }
        }
    }
}

/// Whether another worker may be created.
fn is_passing(error: &Error) -> bool {
    error.is_transient() || (error.outcome_unknown() && !error.is_closed())
}

/// What a taker waits for.
pub(super) fn waiting() -> Phase {
    Phase::Recipe("waiting for an item that is free".into())
}
