//! The way to a hold: one request if the lock is free, otherwise a wait in its queue.

use std::time::Duration;

use lockkeeper_lock::{BootInstant, Deadline};
use tracing::debug;

use crate::error::{Error, Phase};
use crate::hold::{Hold, IdGuard};
use crate::lease::{self, LeaseClock};
use crate::manager::{CallError, Connection, ConnectionManager};
use crate::recipe_error::SemaphoreError;
use crate::script::{Answer, Kind, LockKeys, Waiting};

/// The first pause after a request without an answer.
const PAUSE_MIN: Duration = Duration::from_millis(10);
/// The longest one.
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// Waits for the lock.
pub(crate) async fn acquire(
    manager: &ConnectionManager,
    keys: &LockKeys,
    asked: u32,
    deadline: Deadline,
) -> Result<Hold, Error> {
    if deadline.is_immediate() {
        return match try_acquire(manager, keys, asked).await? {
            Ok(hold) => Ok(hold),
            Err(waiting) => Err(timeout(keys, phase(keys, asked, &waiting), deadline)),
        };
    }
    let mut acquire = Acquire::new(manager, keys, asked, true);
    let mut current = Phase::Connecting;
    let granted = tokio::select! {
        biased;
        () = manager.shared().closing() => return Err(Error::Closed),
        granted = acquire.wait(&mut current) => granted?,
        () = deadline.passed() => return Err(timeout(keys, current, deadline)),
    };
    acquire.into_hold(granted)
}

/// Takes the lock if it is free now. Otherwise returns what is ahead.
pub(crate) async fn try_acquire(
    manager: &ConnectionManager,
    keys: &LockKeys,
    asked: u32,
) -> Result<Result<Hold, Waiting>, Error> {
    let mut acquire = Acquire::new(manager, keys, asked, false);
    let mut current = Phase::Connecting;
    let limit = Deadline::after(manager.operation_timeout());
    let answer = tokio::select! {
        biased;
        () = manager.shared().closing() => return Err(Error::Closed),
        answer = acquire.ask(&mut current) => answer?,
        () = limit.passed() => return Err(timeout(keys, current, limit)),
    };
    match answer {
        Asked::Granted(granted) => acquire.into_hold(granted).map(Ok),
        Asked::Waits { waiting, .. } => Ok(Err(waiting)),
    }
}

fn timeout(keys: &LockKeys, phase: Phase, deadline: Deadline) -> Error {
    Error::Timeout { phase, name: keys.name.to_string(), waited: deadline.waited() }
}

fn phase(keys: &LockKeys, asked: u32, waiting: &Waiting) -> Phase {
    match keys.kind {
        Kind::Permits { .. } if waiting.ahead == 0 => Phase::Permits { asked, free: waiting.detail },
        _ => Phase::Queued { ahead: waiting.ahead },
    }
}

/// A grant, and the instant from which its lease counts.
#[derive(Clone, Copy, Debug)]
struct Granted {
    token: u64,
    sent: BootInstant,
}

/// The answer of the server.
enum Asked {
    Granted(Granted),
    Waits { waiting: Waiting, sent: BootInstant, connection: Connection },
}

/// One acquire, with its id.
struct Acquire<'a> {
    manager: &'a ConnectionManager,
    keys: &'a LockKeys,
    asked: u32,
    waits: bool,
    id_guard: IdGuard,
}

impl<'a> Acquire<'a> {
    fn new(manager: &'a ConnectionManager, keys: &'a LockKeys, asked: u32, waits: bool) -> Self {
        Self { manager, keys, asked, waits, id_guard: IdGuard::new(manager, keys) }
    }

    fn into_hold(self, granted: Granted) -> Result<Hold, Error> {
        debug!(name = %self.keys.name, token = granted.token, "acquired");
        Hold::new(self.id_guard, granted.token, granted.sent)
    }

    /// Asks until there is a grant. Between two answers it rests, until something can have changed.
    async fn wait(&mut self, current: &mut Phase) -> Result<Granted, Error> {
        let manager = self.manager;
        let shared = manager.shared();
        let id = self.id_guard.id().clone();
        // Before the first request: a grant may come before the answer.
        let mut wait = shared.waits.register(&id);
        loop {
            let (waiting, sent, connection) = match self.ask(current).await? {
                Asked::Granted(granted) => return Ok(granted),
                Asked::Waits { waiting, sent, connection } => (waiting, sent, connection),
            };
            *current = phase(self.keys, self.asked, &waiting);
            let lease = shared.settings.lease;
            let is_foreign = self.keys.kind == Kind::Mutex && waiting.detail == 0;
            let ends = waiting.ends.map(Duration::from_millis);
            let rest = lease::next_look(lease, waiting.ahead, ends, is_foreign);
            tokio::select! {
                biased;
                token = wait.granted_after(waiting.newest) => {
                    // Granted after that answer, so the server counts the lease from a later time. If much
                    // of it is over, the next answer confirms the hold anew.
                    if !LeaseClock::new(sent, lease).is_half_over(BootInstant::now()) {
                        return Ok(Granted { token, sent });
                    }
                }
                // A message may have been lost with the connection.
                () = shared.link.replaced(&connection) => {}
                () = tokio::time::sleep(rest) => {}
            }
        }
    }

    /// Asks until there is an answer.
    async fn ask(&mut self, current: &mut Phase) -> Result<Asked, Error> {
        let shared = self.manager.shared();
        let lease = shared.settings.lease_millis();
        let call =
            self.keys.acquire(self.id_guard.id(), lease, self.waits, shared.link.channel(), self.asked);
        let mut pause = PAUSE_MIN;
        loop {
            let mut connection = shared.link.connection().await;
            if *current == Phase::Connecting {
                *current = Phase::Answer;
            }
            let is_first = self.id_guard.arm();
            let sent = BootInstant::now();
            let answer = shared.link.send(&mut connection, &call, shared.settings.request_limit()).await;
            let name = || self.keys.name.to_string();
            match answer.as_deref().map(Answer::read) {
                Ok(Some(Answer::Held { token })) => return Ok(Asked::Granted(Granted { token, sent })),
                Ok(Some(Answer::Waits(waiting))) => {
                    // An earlier request without an answer may still arrive at the server.
                    if !self.waits && is_first {
                        self.id_guard.disarm();
                    }
                    return Ok(Asked::Waits { waiting, sent, connection });
                }
                Ok(Some(Answer::OtherLimit { recorded })) => {
                    let mine = match self.keys.kind {
                        Kind::Permits { limit } => limit,
                        Kind::Mutex => 1,
                    };
                    return Err(SemaphoreError::LimitsDisagree { name: name(), mine, recorded }.into());
                }
                Ok(None) => {
                    let cause = "an answer that is not of this protocol".to_owned();
                    return Err(Error::Refused { name: name(), cause });
                }
                Err(CallError::NoAnswer(cause)) => debug!(name = %self.keys.name, cause, "asking again"),
                Err(refused) => {
                    if is_first {
                        self.id_guard.disarm();
                    }
                    return Err(match refused {
                        CallError::Refused(cause) => Error::Refused { name: name(), cause: cause.clone() },
                        _ => Error::ConflictingKind { name: name() },
                    });
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }
}
