use std::time::Duration;

use lockkeeper_core::{Admitted, Deadline, Error, Hold};

use crate::lock::{Guard, HoldAccess};

/// A member inside a [`DoubleBarrier`](super::DoubleBarrier).
///
/// It is lost as every guard is: if its session ends, or its node is deleted. The other members then count it
/// as one that has left. A drop leaves in the background, and waits for nobody.
///
/// # Methods
///
/// Those of every [`Guard`](crate::Guard), and [`leave`](Self::leave) and
/// [`leave_timeout`](Self::leave_timeout).
pub type Inside = Guard<MemberHold>;

/// The hold of a member.
#[derive(Debug)]
pub struct MemberHold(Admitted);

impl Inside {
    pub(super) fn new(admitted: Admitted) -> Self {
        Self::of(MemberHold(admitted))
    }

    /// Leaves, and waits until all members of the round have left, without a limit of time. A member that
    /// crashed has left when its session ends.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] if this member had been lost before: the others may have left without it.
    /// [`Error::Refused`] (no right to read or delete), [`Error::Closed`] after a shutdown has begun.
    ///
    /// # Session loss
    ///
    /// This member has left, and waits for the others in the next session.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: this member leaves in the background.
    pub async fn leave(self) -> Result<(), Error> {
        self.holds.0.leave(Deadline::never()).await
    }

    /// As [`leave`](Self::leave), for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] if other members are still inside, and this one has left. [`Error::Release`] if no
    /// answer came: this member leaves in the background. Otherwise as [`leave`](Self::leave).
    ///
    /// # Session loss
    ///
    /// As [`leave`](Self::leave).
    ///
    /// # Cancel safety
    ///
    /// As [`leave`](Self::leave).
    pub async fn leave_timeout(self, timeout: Duration) -> Result<(), Error> {
        self.holds.0.leave(Deadline::after(timeout)).await
    }
}

impl HoldAccess for MemberHold {
    fn first(&self) -> &Hold {
        self.0.hold()
    }
}
