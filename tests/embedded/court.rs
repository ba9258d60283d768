//! The oracle of exclusion: every grant is entered, and compared with what everyone else holds.

use std::ops::Deref;
use std::sync::Arc;

use lockkeeper::{BootInstant, FencingToken, OwnedMutexGuard, OwnedReentrantMutexGuard, ReleaseError};
use parking_lot::Mutex;

/// Everyone's grants of one lock.
#[derive(Default)]
pub(crate) struct Court {
    record: Mutex<Record>,
}

#[derive(Default)]
struct Record {
    /// A session was ended by decree: what its client holds is valid for a while longer, and nobody can know.
    is_suspended: bool,
    holds: Vec<(&'static str, Kept)>,
    last_token: Option<FencingToken>,
    violations: Vec<String>,
}

/// A guard of either kind.
pub(crate) enum Guard {
    Plain(OwnedMutexGuard),
    Reentrant(OwnedReentrantMutexGuard),
}

impl Deref for Guard {
    type Target = lockkeeper::Hold;

    fn deref(&self) -> &lockkeeper::Hold {
        match self {
            Self::Plain(guard) => guard,
            Self::Reentrant(guard) => guard,
        }
    }
}

/// Where a guard is kept until it is taken out.
type Kept = Arc<Mutex<Option<Arc<Guard>>>>;

/// A grant that was entered. Taken out of the books before the guard is given back, so that from then on it claims
/// nothing.
pub(crate) struct Hold(Kept);

impl Court {
    /// Enters a grant: no other hold may be valid at this moment, and the token is greater than every earlier one.
    pub(crate) fn enter(&self, who: &'static str, guard: Guard) -> Hold {
        let now = BootInstant::now();
        let mut record = self.record.lock();
        let mut violations = Vec::new();
        let token = guard.fencing_token();
        for (other, hold) in &record.holds {
            if let Some(hold) = &*hold.lock()
                && hold.path() != guard.path()
                && (hold.is_valid() || hold.valid_until() > now)
                && guard.is_valid()
            {
                violations.push(format!(
                    "{who} was granted {} while {other} holds {}",
                    guard.path(),
                    hold.path()
                ));
            }
        }
        if guard.is_valid() {
            if record.last_token.is_some_and(|last| token < last) {
                violations.push(format!("{who}'s token {token} is less than one before"));
            }
            record.last_token = Some(token);
        }
        if !record.is_suspended {
            record.violations.append(&mut violations);
        }
        let hold = Arc::new(Mutex::new(Some(Arc::new(guard))));
        record.holds.push((who, Arc::clone(&hold)));
        Hold(hold)
    }

    /// From now on clocks and tokens prove nothing in this case.
    pub(crate) fn suspend(&self) {
        self.record.lock().is_suspended = true;
    }

    pub(crate) fn verdict(&self) -> Result<(), String> {
        let violations = &self.record.lock().violations;
        if violations.is_empty() { Ok(()) } else { Err(format!("double grant: {}", violations.join("; "))) }
    }
}

impl Hold {
    pub(crate) fn path(&self) -> Option<String> {
        self.0.lock().as_ref().map(|guard| guard.path().to_owned())
    }

    pub(crate) fn is_valid(&self) -> bool {
        self.0.lock().as_ref().is_some_and(|guard| guard.is_valid())
    }

    /// Until when it is valid, as far as is known; the past once it was taken.
    pub(crate) fn valid_until(&self) -> BootInstant {
        self.0.lock().as_ref().map_or_else(BootInstant::now, |guard| guard.valid_until())
    }

    /// The guard, for as long as it is not taken out.
    pub(crate) fn guard(&self) -> Option<Arc<Guard>> {
        self.0.lock().clone()
    }

    /// Takes the guard out of the books. `None` if it was, or while somebody else uses it.
    pub(crate) fn take(&self) -> Option<Guard> {
        let guard = self.0.lock().take();
        guard.and_then(Arc::into_inner)
    }

    /// `None` when there was nothing to release.
    pub(crate) async fn release(&self) -> Option<Result<(), ReleaseError>> {
        match self.take()? {
            Guard::Plain(guard) => Some(guard.release().await),
            Guard::Reentrant(guard) => Some(guard.release().await),
        }
    }
}
