use std::sync::{Arc, Weak};
use std::time::Duration;

use lockkeeper_core::{Deadline, Error, Line, Phase};
use tokio::sync::oneshot;
use tracing::info;

use super::{Keeper, Place};

/// A wait that takes this long is told to whoever reads the log, and told again: as in the line.
const LONG_WAIT: Duration = Duration::from_secs(30);

/// The right to hold, or to stand in the line for all of this process. Dropped, it is the next one's.
pub(super) struct Turn {
    keeper: Weak<Keeper>,
    pub(super) number: u64,
    /// What comes with it.
    pub(super) place: Option<Place>,
}

impl Turn {
    pub(super) fn new(keeper: &Arc<Keeper>, number: u64, place: Option<Place>) -> Self {
        Self { keeper: Arc::downgrade(keeper), number, place }
    }

    /// Nobody got it: it is nobody's, and only the place is left.
    pub(super) fn taken_back(mut self) -> Option<Place> {
        self.keeper = Weak::new();
        self.place.take()
    }

    /// `None` once the last clone of the mutex is gone.
    pub(super) fn keeper(&self) -> Option<Arc<Keeper>> {
        self.keeper.upgrade()
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(keeper) = self.keeper() {
            keeper.end_turn(self.number, self.place.take());
        }
    }
}

/// One who waits for the turn. Dropped, it waits no more; a turn that was on its way is passed on.
pub(super) struct Waiting<'a> {
    keeper: &'a Arc<Keeper>,
    number: u64,
    turn: oneshot::Receiver<Turn>,
    is_over: bool,
}

impl<'a> Waiting<'a> {
    pub(super) fn new(keeper: &'a Arc<Keeper>, number: u64, turn: oneshot::Receiver<Turn>) -> Self {
        Self { keeper, number, turn, is_over: false }
    }

    pub(super) async fn turn(mut self, line: &Line, deadline: Deadline) -> Result<Turn, Error> {
        let manager = line.manager();
        loop {
            tokio::select! {
                biased;
                () = manager.closing() => return Err(Error::Closed),
                turn = &mut self.turn => {
                    self.is_over = true;
                    return turn.map_err(|_| Error::Closed);
                }
                () = deadline.or_after(LONG_WAIT).passed() => {
                    let (ahead, waited) = (self.keeper.ahead(self.number), deadline.waited());
                    let path = line.directory();
                    if deadline.has_passed() {
                        let (phase, path) = (Phase::InProcess { ahead }, path.to_string());
                        return Err(Error::Timeout { phase, path, waited });
                    }
                    info!(%path, ahead, ?waited, "still waiting for other tasks of this process");
                }
            }
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        self.turn.close();
        self.keeper.leave(self.number);
        // Sent just before it was closed: dropped here, and so passed on.
        drop(self.turn.try_recv());
    }
}
