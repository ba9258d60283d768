use std::fmt::{self, Display, Formatter};

use lockkeeper_core::{Error, FencingToken, Hold, ReleaseError, ZnodePath};

use super::guard::{Guard, HoldAccess, MemberGuard, SingleHold};

/// A held [`ZooKeeperLock`](super::ZooKeeperLock), or several held together.
///
/// A drop of the guard releases all of them in the background.
///
/// # Methods
///
/// Those of every [`Guard`](crate::Guard), and [`paths`](Self::paths), [`members`](Self::members),
/// [`fencing_token`](Self::fencing_token), [`fencing_tokens`](Self::fencing_tokens) and
/// [`release`](Self::release).
pub type MultiLockGuard = Guard<Members>;

/// The holds of one or more locks.
#[derive(Debug)]
pub struct Members {
    first: MemberGuard,
    others: Vec<MemberGuard>,
}

impl HoldAccess for Members {
    fn first(&self) -> &Hold {
        self.first.hold()
    }

    fn others(&self) -> impl Iterator<Item = &Hold> {
        self.others.iter().map(MemberGuard::hold)
    }
}

impl MultiLockGuard {
    pub(crate) fn of_one<H: SingleHold + Send + Sync + 'static>(path: &ZnodePath, guard: Guard<H>) -> Self {
        Self::of(Members { first: MemberGuard::new(path, guard), others: Vec::new() })
    }

    /// `None` if there are no guards.
    pub(crate) fn of_all(guards: Vec<MemberGuard>) -> Option<Self> {
        let mut guards = guards.into_iter();
        Some(Self::of(Members { first: guards.next()?, others: guards.collect() }))
    }

    pub(crate) fn into_guards(self) -> Vec<MemberGuard> {
        let Members { first, others } = self.holds;
        std::iter::once(first).chain(others).collect()
    }

    /// The hold of each lock, with the lock's path, in order.
    pub fn members(&self) -> impl Iterator<Item = (&ZnodePath, &Hold)> {
        let guards = std::iter::once(&self.holds.first).chain(&self.holds.others);
        guards.map(|guard| (&guard.path, guard.hold()))
    }

    /// The paths of the held locks, in order.
    pub fn paths(&self) -> impl Iterator<Item = &ZnodePath> {
        self.members().map(|(path, _)| path)
    }

    /// The fencing token of each lock, in the order of [`paths`](Self::paths).
    pub fn fencing_tokens(&self) -> impl Iterator<Item = (&ZnodePath, FencingToken)> {
        self.members().map(|(path, hold)| (path, hold.fencing_token()))
    }

    /// The fencing token of the lock at this path, if this guard holds it.
    #[must_use]
    pub fn fencing_token(&self, path: impl AsRef<str>) -> Option<FencingToken> {
        self.fencing_tokens().find(|(of, _)| of.as_str() == path.as_ref()).map(|(_, token)| token)
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
        ReleaseErrors::of(release(self.into_guards()).await).map_or(Ok(()), Err)
    }
}

/// Releases the taken locks, the last one first.
pub(crate) async fn release(guards: Vec<MemberGuard>) -> Vec<ReleaseError> {
    let mut errors = Vec::new();
    let mut holds = Vec::new();
    for guard in guards.into_iter().rev() {
        match guard.into_hold().await {
            Ok(hold) => holds.extend(hold.map(|hold| *hold)),
            Err(error) => errors.push(error),
        }
    }
    errors.extend(Hold::release_all(holds).await);
    errors
}

/// The errors of a release of several locks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleaseErrors {
    first: ReleaseError,
    others: Vec<ReleaseError>,
}

impl ReleaseErrors {
    /// `None` if there are no errors.
    pub(crate) fn of(errors: impl IntoIterator<Item = ReleaseError>) -> Option<Self> {
        let mut errors = errors.into_iter();
        Some(Self { first: errors.next()?, others: errors.collect() })
    }

    /// One error for each lock whose release failed: one or more.
    pub fn errors(&self) -> impl Iterator<Item = &ReleaseError> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// Whether a lock was lost before its release.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.errors().any(ReleaseError::is_lost)
    }

    /// Whether a node may still exist.
    #[must_use]
    pub fn outcome_unknown(&self) -> bool {
        self.errors().any(ReleaseError::outcome_unknown)
    }
}

impl Display for ReleaseErrors {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        for (number, error) in self.errors().enumerate() {
            let separator = if number == 0 { "" } else { "; " };
            write!(formatter, "{separator}{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ReleaseErrors {}

/// Returns one error: a loss if there is one, or else the first error. The other errors are dropped: read
/// [`errors`](ReleaseErrors::errors) before, if they matter.
impl From<ReleaseErrors> for Error {
    fn from(errors: ReleaseErrors) -> Self {
        let lost = errors.errors().find(|error| error.is_lost()).cloned();
        Self::Release(lost.unwrap_or(errors.first))
    }
}

#[cfg(test)]
mod tests {
    use lockkeeper_core::{LossReason, Lost};

    use super::*;

    fn unconfirmed(path: &str) -> ReleaseError {
        ReleaseError::Unconfirmed { path: path.into(), cause: "no answer".to_owned() }
    }

    #[test]
    fn of_several_errors_of_a_release_a_loss_is_the_one_that_counts() {
        let lost = ReleaseError::Lost(Lost { path: "/b".into(), reason: LossReason::NodeDeleted });
        for (errors, counts) in [
            (vec![unconfirmed("/a")], unconfirmed("/a")),
            (vec![unconfirmed("/a"), unconfirmed("/b")], unconfirmed("/a")),
            (vec![unconfirmed("/a"), lost.clone()], lost.clone()),
            (vec![lost.clone(), unconfirmed("/b")], lost.clone()),
        ] {
            let errors = ReleaseErrors::of(errors).expect("an error");
            assert!(matches!(Error::from(errors), Error::Release(error) if error == counts));
        }
        assert_eq!(ReleaseErrors::of(Vec::new()), None);
    }
}
