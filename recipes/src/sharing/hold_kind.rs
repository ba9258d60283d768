use lockkeeper_core::Hold;

use super::hand_off_hold::HandOffHold;

/// A hold of one guard alone, or one whose node the guards of this process share.
#[derive(Debug)]
pub(crate) enum HoldKind {
    Plain(Box<Hold>),
    HandOff(Box<HandOffHold>),
}

impl HoldKind {
    pub(crate) fn hold(&self) -> &Hold {
        match self {
            Self::Plain(hold) => hold,
            Self::HandOff(hold) => hold.hold(),
        }
    }

    /// Returns the hold if the caller has to release it. Otherwise its node is handed off, or idle.
    pub(crate) fn into_hold(self) -> Option<Box<Hold>> {
        match self {
            Self::Plain(hold) => Some(hold),
            Self::HandOff(hold) => hold.into_hold(),
        }
    }
}

impl From<Hold> for HoldKind {
    fn from(hold: Hold) -> Self {
        Self::Plain(Box::new(hold))
    }
}

impl From<HandOffHold> for HoldKind {
    fn from(hold: HandOffHold) -> Self {
        Self::HandOff(Box::new(hold))
    }
}
