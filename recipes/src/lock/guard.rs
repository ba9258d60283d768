use std::fmt::{self, Display, Formatter};
use std::future::Future;

use lockkeeper_core::{BootInstant, Error, FencingToken, Hold, Lost, ReleaseError, Txn, ZnodePath};

use super::recipe::MemberGuard;

/// A held [`Lock`](super::Lock), or several held together.
///
/// Several are valid only together: when one is lost, the guard is. Dropping it releases everything in the
/// background.
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

    /// `None` for nothing at all.
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

    /// The paths of what is held, in order.
    pub fn paths(&self) -> impl Iterator<Item = &ZnodePath> {
        self.guards().map(|guards| &guards.path)
    }

    /// The hold of each, with the lock's path, in order.
    pub fn members(&self) -> impl Iterator<Item = (&ZnodePath, &Hold)> {
        self.guards().map(|guards| (&guards.path, guards.hold()))
    }

    /// The fencing token of each, in the order of [`paths`](Self::paths).
    pub fn fencing_tokens(&self) -> impl Iterator<Item = (&ZnodePath, FencingToken)> {
        self.guards().map(|guards| (&guards.path, guards.hold().fencing_token()))
    }

    /// The fencing token of the lock at this whole path, if it is held here.
    #[must_use]
    pub fn fencing_token(&self, path: &ZnodePath) -> Option<FencingToken> {
        self.fencing_tokens().find(|(of, _)| *of == path).map(|(_, token)| token)
    }

    /// Whether the server cannot have given any of it to anyone else yet. Costs no request.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.check().is_ok()
    }

    /// As [`is_valid`](Self::is_valid), and says why not.
    ///
    /// # Errors
    ///
    /// [`Lost`] of the first that is lost.
    pub fn check(&self) -> Result<(), Lost> {
        self.guards().try_for_each(|guards| guards.hold().check())
    }

    /// The instant until which the server cannot have given any of it to anyone else, as far as is known now.
    #[must_use]
    pub fn valid_until(&self) -> BootInstant {
        let first = self.first.hold().valid_until();
        self.others.iter().fold(first, |until, guards| until.min(guards.hold().valid_until()))
    }

    /// Resolves when the first of them is lost.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a loss is told again to whoever asks later.
    pub async fn lost(&self) -> Lost {
        Hold::lost_any(&self.holds()).await
    }

    /// Resolves when somebody asks for any of it, see [`Hold::revoke_requested`].
    ///
    /// # Errors
    ///
    /// As [`Hold::revoke_requested`], of the first of them.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: what was asked is told again to whoever asks later.
    pub async fn revoke_requested(&self) -> Result<(), Error> {
        Hold::revoke_requested_any(&self.holds()).await
    }

    /// Runs `work` for as long as all of it is valid; see [`Hold::run`].
    ///
    /// # Errors
    ///
    /// [`Lost`] when something was lost before `work` was done.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops `work`; the guard stays.
    pub async fn run<F: Future>(&self, work: F) -> Result<F::Output, Lost> {
        Hold::run_under(&self.holds(), work).await
    }

    /// Writes that are committed only if everything held here still stands; see [`Hold::txn`].
    pub fn txn(&self) -> Txn<'_> {
        self.first.hold().txn_with(self.others.iter().map(MemberGuard::hold))
    }

    /// Gives everything back in one transaction, and waits until the server has done so.
    ///
    /// # Errors
    ///
    /// [`ReleaseErrors`] with one error for each that did not end well; the others were released.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the release goes on in the background.
    pub async fn release(self) -> Result<(), ReleaseErrors> {
        let errors = release(self.into_guards()).await;
        if errors.is_empty() { Ok(()) } else { Err(ReleaseErrors(errors)) }
    }
}

/// Gives back what was taken, the last first.
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

/// What did not end well when something was given back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleaseErrors(Vec<ReleaseError>);

impl ReleaseErrors {
    /// Of one or more.
    pub(crate) fn of(errors: Vec<ReleaseError>) -> Self {
        Self(errors)
    }

    /// One for each that did not end well; never empty.
    #[must_use]
    pub fn errors(&self) -> &[ReleaseError] {
        &self.0
    }

    /// Whether something had been lost before its release.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.0.iter().any(ReleaseError::is_lost)
    }

    /// Whether some node may still stand.
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
