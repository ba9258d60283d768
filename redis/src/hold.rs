use std::sync::Arc;
use std::time::Duration;

use lockkeeper_lock::{BootInstant, Deadline, FencingToken};
use uuid::Uuid;

use crate::error::{Error, LossReason, Lost, ReleaseError};
use crate::lease::{self, LeaseClock};
use crate::manager::ConnectionManager;
use crate::record::HoldRecord;
use crate::script::LockKeys;

/// An id that may hold the lock or wait for it. Its drop has the id released in the background.
#[derive(Debug)]
pub(crate) struct IdGuard {
    manager: ConnectionManager,
    keys: LockKeys,
    id: Arc<str>,
}

impl IdGuard {
    /// A new id. Nothing is sent.
    pub(crate) fn new(manager: &ConnectionManager, keys: &LockKeys) -> Self {
        // The prefix tells a waiter that the holder is a contender of this crate.
        let id = format!("lockkeeper:{}", Uuid::new_v4().simple());
        Self { manager: manager.clone(), keys: keys.clone(), id: id.into() }
    }

    pub(crate) fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// From now on, the server may know the id. Returns whether it could not have known it before.
    pub(crate) fn arm(&mut self) -> bool {
        self.manager.shared().add_id(&self.keys, &self.id)
    }

    /// The server does not know the id any more.
    pub(crate) fn disarm(&mut self) {
        self.manager.shared().remove_id(&self.id);
    }
}

impl Drop for IdGuard {
    fn drop(&mut self) {
        let shared = self.manager.shared();
        if shared.remove_id(&self.id) {
            shared.clean_up(&self.keys, &self.id);
        }
    }
}

/// A held lock. Its drop releases the lock in the background.
#[derive(Debug)]
pub(crate) struct Hold {
    record: Arc<HoldRecord>,
    id_guard: IdGuard,
    token: FencingToken,
}

impl Hold {
    /// The lease counts from `sent`, before which no request was sent that the grant rests on.
    pub(crate) fn new(id_guard: IdGuard, token: u64, sent: BootInstant) -> Result<Self, Error> {
        let lease = LeaseClock::new(sent, id_guard.manager.lease());
        let record = Arc::new(HoldRecord::new(&id_guard.keys, &id_guard.id, lease));
        let shared = id_guard.manager.shared();
        shared.register(&record);
        let is_closing = shared.is_closing();
        let generation = shared.settings.token_generation;
        let hold = Self { record, id_guard, token: FencingToken::new(token).in_generation(generation) };
        // Checked after the hold is counted: a shutdown that begins now waits for it, or loses it.
        if is_closing { Err(Error::Closed) } else { Ok(hold) }
    }

    pub(crate) fn manager(&self) -> &ConnectionManager {
        &self.id_guard.manager
    }

    pub(crate) fn name(&self) -> &str {
        self.record.keys().name.as_str()
    }

    pub(crate) fn fencing_token(&self) -> FencingToken {
        self.token
    }

    pub(crate) fn valid_until(&self) -> BootInstant {
        self.record.valid_until()
    }

    pub(crate) fn check(&self) -> Result<(), Lost> {
        match self.record.reason() {
            Some(reason) => Err(Lost { name: self.name().to_owned(), reason }),
            None => Ok(()),
        }
    }

    pub(crate) async fn lost(&self) -> Lost {
        let mut changes = self.record.losses();
        loop {
            if let Err(lost) = self.check() {
                return lost;
            }
            let left = self.valid_until().remaining().max(Duration::from_millis(1));
            let pause = left.min(lease::clock_check(self.manager().lease()));
            tokio::select! {
                biased;
                _ = changes.changed() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    pub(crate) async fn release(mut self) -> Result<(), ReleaseError> {
        self.check().map_err(ReleaseError::Lost)?;
        self.record.begin_release();
        let manager = self.manager().clone();
        let shared = manager.shared();
        let limit = Deadline::after(manager.operation_timeout());
        let mut passed = std::pin::pin!(limit.passed());
        let call = self.record.keys().release(self.record.id());
        let mut was_unanswered = false;
        let mut cause = "no connection".to_owned();
        loop {
            let attempt = async {
                let mut connection = shared.link.connection().await;
                shared.link.send(&mut connection, &call, shared.settings.request_limit()).await
            };
            let answer = tokio::select! {
                biased;
                answer = attempt => answer,
                () = &mut passed => {
                    return Err(ReleaseError::Unconfirmed { name: self.name().to_owned(), cause });
                }
            };
            match answer.as_deref() {
                // An earlier try whose answer was lost can have released it. Before the lease ends here,
                // nothing else does, but a deletion by hand or a loss of the server's data.
                Ok([released]) if *released == 1 || (was_unanswered && self.check().is_ok()) => {
                    self.id_guard.disarm();
                    return Ok(());
                }
                Ok(_) => {
                    self.id_guard.disarm();
                    let lost = self.check().err();
                    let gone = Lost { name: self.name().to_owned(), reason: LossReason::Gone };
                    return Err(ReleaseError::Lost(lost.unwrap_or(gone)));
                }
                Err(error) => cause = format!("{error:?}"),
            }
            was_unanswered = true;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.id_guard.manager.shared().unregister(&self.record);
    }
}
