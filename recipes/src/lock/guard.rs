use std::fmt::{self, Display, Formatter};
use std::future::Future;

use lockkeeper_core::{BootInstant, Error, FencingToken, Hold, Lost, ReleaseError, Txn, ZnodePath};

use super::recipe::MemberGuard;

/// A held [`Lock`](super::Lock), or several held together.
///
/// Several locks are valid only together: if one is lost, the guard is lost. A drop of the guard releases all
/// of them in the background.
#[derive(Debug)]
#[must_use = "a guard that is not kept releases at once"]
#[clippy::has_significant_drop]
pub struct LockGuard {
    first: MemberGuard,
    others: Vec<MemberGuard>,
}

impl LockGuard {
    pub(crate) fn of(first: MemberGuard) -> Self {
        Self { first, others: Vec::new() }
    }

    /// `None` if the guard has no holds.
    pub(crate) fn of_all(guards: Vec<MemberGuard>) -> Option<Self> {
        let mut guards = guards.into_iter();
        Some(Self { first: guards.next()?, others: guards.collect() })
    }

    fn guards(&self) -> impl Iterator<Item = &MemberGuard> {
        std::iter::once(&self.first).chain(&self.others)
    }

    fn holds(&self) -> Vec<&Hold> {
        self.guards().map(MemberGuard::hold).collect()
    }

    pub(crate) fn into_guards(self) -> Vec<MemberGuard> {
        let Self { first, others } = self;
        std::iter::once(first).chain(others).collect()
    }

    /// The paths of the held locks, in order.
    pub fn paths(&self) -> impl Iterator<Item = &ZnodePath> {
        self.guards().map(|guards| &guards.path)
    }

    /// The hold of each lock, with the lock's path, in order.
    pub fn members(&self) -> impl Iterator<Item = (&ZnodePath, &Hold)> {
        self.guards().map(|guards| (&guards.path, guards.hold()))
    }

    /// The fencing token of each lock, in the order of [`paths`](Self::paths).
    pub fn fencing_tokens(&self) -> impl Iterator<Item = (&ZnodePath, FencingToken)> {
        self.guards().map(|guards| (&guards.path, guards.hold().fencing_token()))
    }

    /// The fencing token of the lock at this whole path, if this guard holds it.
    #[must_use]
    pub fn fencing_token(&self, path: &ZnodePath) -> Option<FencingToken> {
        self.fencing_tokens().find(|(of, _)| *of == path).map(|(_, token)| token)
    }

    /// Whether the server cannot have granted any of the locks to another contender yet. Costs no request.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.check().is_ok()
    }

    /// As [`is_valid`](Self::is_valid), with the reason of the loss.
    ///
    /// # Errors
    ///
    /// [`Lost`], for the first lock that is lost.
    pub fn check(&self) -> Result<(), Lost> {
        self.guards().try_for_each(|guards| guards.hold().check())
    }

    /// The instant until which the server cannot grant any of the locks to another contender, as far as is
    /// known now.
    #[must_use]
    pub fn valid_until(&self) -> BootInstant {
        let first = self.first.hold().valid_until();
        self.others.iter().fold(first, |until, guards| until.min(guards.hold().valid_until()))
    }

    /// Resolves when the first lock is lost.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a later call resolves with the same loss.
    pub async fn lost(&self) -> Lost {
        Hold::lost_any(&self.holds()).await
    }

    /// Resolves when another client asks for any of the locks: see [`Hold::revoke_requested`].
    ///
    /// # Errors
    ///
    /// As [`Hold::revoke_requested`], for the first lock that fails.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a later call resolves with the same request.
    pub async fn revoke_requested(&self) -> Result<(), Error> {
        Hold::revoke_requested_any(&self.holds()).await
    }

    /// Runs `work` as long as all locks are valid: see [`Hold::run`].
    ///
    /// # Errors
    ///
    /// [`Lost`] if a lock was lost before `work` was done.
    ///
    /// # Cancel safety
    ///
    /// A drop of the future drops `work`. The guard stays.
    pub async fn run<F: Future>(&self, work: F) -> Result<F::Output, Lost> {
        Hold::run_under(&self.holds(), work).await
    }

    /// Starts writes that are committed only if all nodes of this guard still exist: see [`Hold::txn`].
    pub fn txn(&self) -> Txn<'_> {
        self.first.hold().txn_with(self.others.iter().map(MemberGuard::hold))
    }

    /// Releases all locks by one transaction, and waits until the server has committed it.
    ///
    /// # Errors
    ///
    /// [`ReleaseErrors`], with one error for each lock whose release failed. The other locks are released.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the release continues in the background.
    pub async fn release(self) -> Result<(), ReleaseErrors> {
        let errors = release(self.into_guards()).await;
        if errors.is_empty() { Ok(()) } else { Err(ReleaseErrors(errors)) }
    }
}

/// Releases the taken locks, the last one first.
pub(crate) async fn release(guards: Vec<MemberGuard>) -> Vec<ReleaseError> {
    let mut errors = Vec::new();
    let mut holds = Vec::new();
    for guards in guards.into_iter().rev() {
        match guards.guard.into_hold().await {
            Ok(hold) => holds.extend(hold),
            Err(error) => errors.push(error),
        }
    }
    errors.extend(Hold::release_all(holds).await);
    errors
}

/// The errors of a release of several locks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleaseErrors(Vec<ReleaseError>);

impl ReleaseErrors {
    /// Made of one or more errors.
    pub(crate) fn of(errors: Vec<ReleaseError>) -> Self {
        Self(errors)
    }

    /// One error for each lock whose release failed. Never empty.
    #[must_use]
    pub fn errors(&self) -> &[ReleaseError] {
        &self.0
    }

    /// Whether a lock was lost before its release.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.0.iter().any(ReleaseError::is_lost)
    }

    /// Whether a node may still exist.
    #[must_use]
    pub fn outcome_unknown(&self) -> bool {
        self.0.iter().any(ReleaseError::outcome_unknown)
    }
}

impl Display for ReleaseErrors {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        for (number, error) in self.0.iter().enumerate() {
            let separator = if number == 0 { "" } else { "; " };
            write!(formatter, "{separator}{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ReleaseErrors {}
