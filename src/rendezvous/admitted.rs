use std::fmt::{self, Debug, Formatter};

use super::decide::Ready;
use super::member::MemberCreates;
use super::place::Rendezvous;
use crate::hold::Hold;

/// A member that was let in. A drop of it leaves in the background, and waits for nobody.
#[must_use = "a member that is not kept leaves at once"]
pub struct Admitted {
    pub(super) hold: Hold,
    pub(super) ready: Ready,
    pub(super) rendezvous: Rendezvous,
    // Dropped behind the hold, which deletes the node.
    pub(super) creates: MemberCreates,
}

impl Admitted {
    /// The properties of every hold: whether it is valid, when it is lost, its fencing token, and writes that
    /// are committed only while its node exists.
    pub fn hold(&self) -> &Hold {
        &self.hold
    }
}

impl Debug for Admitted {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Admitted").field("hold", &self.hold).finish_non_exhaustive()
    }
}
