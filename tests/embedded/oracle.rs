//! The oracle: every grant is entered, and compared with all other holds.

use std::collections::HashMap;
use std::sync::Arc;

use lockkeeper::{BootInstant, FencingToken, Hold as NodeHold, ReleaseError};
use lockkeeper_test_recipes::{Claim, Granted, Share};
use parking_lot::Mutex;

/// Everyone's grants.
#[derive(Default)]
pub(crate) struct Oracle {
    record: Mutex<Record>,
}

#[derive(Default)]
struct Record {
    /// A server ended a session by itself: a hold of its client is valid for a while longer, and no client
    /// can know.
    is_suspended: bool,
    holds: Vec<(&'static str, SharedGrant)>,
    last_tokens: HashMap<String, LastTokens>,
    violations: Vec<String>,
}

/// The greatest tokens of one lock so far, and the node of the first of them.
#[derive(Default)]
struct LastTokens {
    of_all: Option<(FencingToken, String)>,
    exclusive: Option<FencingToken>,
}

/// Where a guard is kept until it is taken out.
type SharedGrant = Arc<Mutex<Option<Arc<Granted>>>>;

/// A grant that was entered. It is taken out of the record before the guard is released: from then on it
/// claims nothing.
pub(crate) struct Hold(SharedGrant);

impl Oracle {
    /// Enters a grant. At this moment every other hold that is valid allows it, and its token is greater than
    /// those it has to be greater than.
    pub(crate) fn enter(&self, holder: &'static str, grant: Granted) -> Hold {
        let now = BootInstant::now();
        let mut record = self.record.lock();
        let mut violations = Vec::new();
        for (claim, hold) in grant.claims().iter().zip(grant.holds()).filter(|(_, hold)| hold.is_valid()) {
            violations.extend(record.judge(claim, now).map(|what| format!("{holder} {what}")));
            violations.extend(record.judge_token(claim, hold).map(|what| format!("{holder}'s {what}")));
        }
        if !record.is_suspended {
            record.violations.append(&mut violations);
        }
        let hold = Arc::new(Mutex::new(Some(Arc::new(grant))));
        record.holds.push((holder, Arc::clone(&hold)));
        Hold(hold)
    }

    /// From now on clocks and tokens prove nothing in this case.
    pub(crate) fn suspend(&self) {
        self.record.lock().is_suspended = true;
    }

    pub(crate) fn verdict(&self) -> Result<(), String> {
        let violations = &self.record.lock().violations;
        if violations.is_empty() { Ok(()) } else { Err(violations.join("; ")) }
    }
}

impl Record {
    /// What is wrong with this claim, beside the other holds of the lock.
    fn judge(&self, claim: &Claim, now: BootInstant) -> Option<String> {
        let mut all = vec![claim.share];
        let mut others = Vec::new();
        for (other, hold) in &self.holds {
            // Not cloned: a release needs the only reference.
            let kept = hold.lock();
            for (theirs, held) in kept.iter().flat_map(|grant| grant.claims().into_iter().zip(grant.holds()))
            {
                let is_another = theirs.nodes != claim.nodes && theirs.directory() == claim.directory();
                // Also one that was lost since, if not before this very moment.
                if is_another && (held.is_valid() || held.valid_until() > now) {
                    all.push(theirs.share);
                    others.push(format!("{other} holds {:?} ({:?})", theirs.nodes, theirs.share));
                }
            }
        }
        (!may_be_held_together(&all))
            .then(|| format!("was granted {:?} ({:?}) while {}", claim.nodes, claim.share, others.join(", ")))
    }

    fn judge_token(&mut self, claim: &Claim, hold: &NodeHold) -> Option<String> {
        let (token, path) = (hold.fencing_token(), hold.path());
        let last = self.last_tokens.entry(claim.directory().to_owned()).or_default();
        let before = last.of_all.as_ref();
        let is_in_order = match claim.share {
            // A nested hold has its first hold's.
            Share::Exclusive => {
                before.is_none_or(|(last, of)| token > *last || (token == *last && *of == *path))
            }
            // A downgraded reader keeps its writer's.
            Share::Shared => last.exclusive.is_none_or(|last| token >= last),
            Share::Permits { .. } => true,
        };
        let wrong =
            (!is_in_order).then(|| format!("token {token} at {path} is not greater than those before"));
        if before.is_none_or(|(last, _)| token > *last) {
            last.of_all = Some((token, path.to_string()));
        }
        if claim.share == Share::Exclusive {
            last.exclusive = last.exclusive.max(Some(token));
        }
        wrong
    }
}

/// Whether all these may be held at once.
fn may_be_held_together(shares: &[Share]) -> bool {
    let permits: u32 = shares.iter().map(|share| share.permits()).sum();
    let has_room = |share: &Share| share.limit().is_some_and(|limit| permits <= limit);
    let is_alone = matches!(shares, [Share::Exclusive]);
    is_alone || shares.iter().all(|share| *share == Share::Shared) || shares.iter().all(has_room)
}

/// How many nodes a grant holds.
pub(crate) fn nodes(grant: &Granted) -> usize {
    grant.holds().into_iter().map(|hold| hold.node_count() as usize).sum()
}

impl Hold {
    /// The path of its first node. `None` once it was taken out.
    pub(crate) fn path(&self) -> Option<String> {
        self.of_grant(|grant| grant.holds().first().map(|hold| hold.path().to_string()))?
    }

    /// How many nodes it holds.
    pub(crate) fn nodes(&self) -> usize {
        self.of_grant(nodes).unwrap_or_default()
    }

    pub(crate) fn is_valid(&self) -> bool {
        self.of_grant(|grant| grant.is_valid()).unwrap_or_default()
    }

    /// Until when it is valid, as far as is known. In the past once it was taken out.
    pub(crate) fn valid_until(&self) -> BootInstant {
        self.of_grant(|grant| grant.valid_until()).unwrap_or_else(BootInstant::now)
    }

    fn of_grant<T>(&self, read: impl FnOnce(&Granted) -> T) -> Option<T> {
        self.0.lock().as_ref().map(|grant| read(grant))
    }

    /// The guard, for as long as it is not taken out.
    pub(crate) fn grant(&self) -> Option<Arc<Granted>> {
        self.0.lock().clone()
    }

    /// Takes the guard out of the record. `None` if it was, or while another task uses it.
    pub(crate) fn take(&self) -> Option<Granted> {
        let grant = self.0.lock().take();
        grant.and_then(Arc::into_inner)
    }

    /// `None` when there was nothing to release.
    pub(crate) async fn release(&self) -> Option<Result<(), ReleaseError>> {
        Some(self.take()?.release().await)
    }
}

#[test]
fn readers_share_permits_fit_and_the_exclusive_is_alone() {
    const R: Share = Share::Shared;
    const W: Share = Share::Exclusive;
    let permits = |permits| Share::Permits { permits, limit: 3 };
    for together in [&[W][..], &[R, R], &[permits(3)], &[permits(2), permits(1)]] {
        assert!(may_be_held_together(together), "{together:?}");
    }
    for apart in [&[W, W][..], &[R, W], &[permits(4)], &[permits(2), permits(2)], &[permits(1), W]] {
        assert!(!may_be_held_together(apart), "{apart:?}");
    }
}
