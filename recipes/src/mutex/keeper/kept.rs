use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use lockkeeper_core::{Hold, Parked, ReleaseError};

use super::sight::Stay;
use super::turn::Turn;

/// What a guard rests on whose node may stay. Dropped, it is given back.
pub(crate) struct Kept {
    // Dropped first: then the other one is the only one.
    hold: Arc<Hold>,
    stint: Stint,
}

/// One guard's time with the node.
struct Stint {
    hold: Option<Arc<Hold>>,
    stay: Arc<Stay>,
    turn: Turn,
}

/// What is left of a guard that was not passed on.
pub(crate) enum Left {
    Hold(Box<Hold>),
    Parked(Box<Parked>),
}

impl Kept {
    pub(super) fn new(hold: Hold, stay: Arc<Stay>, turn: Turn) -> Self {
        let hold = Arc::new(hold);
        if let Some(keeper) = turn.keeper() {
            keeper.is_held(turn.number, stay.sight());
            // It may have been told before anybody held it.
            if !hold.is_valid() {
                keeper.is_lost(stay.sight());
            }
        }
        Self { stint: Stint { hold: Some(Arc::clone(&hold)), stay, turn }, hold }
    }

    pub(crate) fn hold(&self) -> &Hold {
        &self.hold
    }

    /// Gives it back; what is left is to be released.
    pub(crate) fn give_back(self) -> Option<Left> {
        let Self { hold, mut stint } = self;
        drop(hold);
        stint.give_back()
    }
}

impl Stint {
    fn give_back(&mut self) -> Option<Left> {
        let hold = self.hold.take().and_then(Arc::into_inner)?;
        match self.turn.keeper() {
            Some(keeper) => keeper.give_back(self.turn.number, hold, &self.stay),
            None => Some(Left::Hold(Box::new(hold))),
        }
    }
}

impl Drop for Stint {
    fn drop(&mut self) {
        if let Some(hold) = &self.hold {
            hold.count_as_dropped();
        }
        drop(self.give_back());
    }
}

impl Left {
    pub(crate) async fn release(self) -> Result<(), ReleaseError> {
        match self {
            Self::Hold(hold) => hold.release().await,
            // Boxed, or every task that releases would be as large as this.
            Self::Parked(parked) => Box::pin(parked.release()).await,
        }
    }
}

impl Debug for Kept {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        self.hold.fmt(formatter)
    }
}
