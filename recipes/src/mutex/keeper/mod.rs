//! A node that stays in the process: who of its tasks comes next, and when the node has to go.
//!
//! One task at a time has the [`Turn`]: it stands in the real line for all, or holds. The others wait here, in the order in
//! which they came, and have no nodes. A guard that ends gives its place to the next of them, for as long as
//! [`Sight`] allows it.

mod kept;
mod sight;
mod turn;

use std::collections::VecDeque;
use std::fmt::{self, Debug, Formatter};
use std::sync::{Arc, Weak};

use lockkeeper_core::{Deadline, Error, Hold, Line, Parked};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tracing::Instrument;

pub(super) use self::kept::{Kept, Left};
use self::sight::{Sight, Stay};
use self::turn::{Turn, Waiting};
use super::keep::Keep;

/// What the clones of one mutex share.
#[derive(Clone, Debug)]
pub(super) struct SharedKeeper {
    keeper: Arc<Keeper>,
    /// Held by the clones alone, and by nobody who only looks in for a moment.
    _clones: Arc<()>,
}

/// Keeps the node from one guard to the next.
pub(super) struct Keeper {
    keep: Keep,
    /// Nobody can take what stays here once the last clone of the mutex is gone.
    clones: Weak<()>,
    seat: Mutex<Seat>,
}

struct Seat {
    /// The number of the turn; that of whoever has it, if it is taken.
    turn: u64,
    state: State,
    /// Who waits, first come first.
    waiting: VecDeque<Waiter>,
    arrivals: u64,
}

enum State {
    /// Nobody has the turn, and nobody waits for it.
    Vacant,
    /// Somebody has it, and no guard yet.
    Taken,
    /// A guard rests on a node that is seen so.
    Held(Arc<Sight>),
    /// The node stands for whoever comes next.
    Lingering(Parked, Arc<Stay>, Deadline),
}

struct Waiter {
    number: u64,
    wake: oneshot::Sender<Turn>,
}

/// A place that is passed on, and its stay in this process.
type Place = (Parked, Arc<Stay>);

impl SharedKeeper {
    pub(super) fn new(keep: Keep) -> Self {
        let clones = Arc::new(());
        let seat = Seat { turn: 0, state: State::Vacant, waiting: VecDeque::new(), arrivals: 0 };
        let keeper = Keeper { keep, clones: Arc::downgrade(&clones), seat: Mutex::new(seat) };
        Self { keeper: Arc::new(keeper), _clones: clones }
    }

    pub(super) async fn acquire(&self, line: Line, deadline: Deadline) -> Result<Kept, Error> {
        self.keeper.acquire(line, deadline).await
    }

    pub(super) async fn try_acquire(&self, line: Line, limit: Deadline) -> Result<Option<Kept>, Error> {
        self.keeper.try_acquire(line, limit).await
    }
}

impl Keeper {
    async fn acquire(self: &Arc<Self>, line: Line, deadline: Deadline) -> Result<Kept, Error> {
        let call = line.call(deadline);
        let turn = match self.turn_or_wait() {
            Ok(turn) => Ok(turn),
            Err(waiting) => waiting.turn(call.line(), deadline).instrument(call.span()).await,
        };
        let mut turn = match turn {
            Ok(turn) => turn,
            Err(error) => {
                call.failed(&error);
                return Err(error);
            }
        };
        if let Some(kept) = self.resume(&mut turn) {
            call.granted(&kept.hold);
            return Ok(kept.with(turn));
        }
        let hold = call.acquire(deadline).await?;
        Ok(self.begin(hold).with(turn))
    }

    async fn try_acquire(self: &Arc<Self>, line: Line, limit: Deadline) -> Result<Option<Kept>, Error> {
        let call = line.try_call();
        let Some(mut turn) = self.turn_if_free() else {
            call.busy();
            return Ok(None);
        };
        if let Some(kept) = self.resume(&mut turn) {
            call.granted(&kept.hold);
            return Ok(Some(kept.with(turn)));
        }
        let hold = call.try_acquire(limit).await?;
        Ok(hold.map(|hold| self.begin(hold).with(turn)))
    }

    /// Holds what came with the turn, if something did and it still stands.
    fn resume(&self, turn: &mut Turn) -> Option<Unbound> {
        let (parked, stay) = turn.place.take()?;
        let hold = parked.resume().ok()?;
        Some(Unbound { hold, stay })
    }

    /// A node of our own was granted: its stay here begins.
    fn begin(self: &Arc<Self>, hold: Hold) -> Unbound {
        let stay = sight::attend(self, self.keep, &hold);
        Unbound { hold, stay }
    }

    /// The turn, if nobody has it.
    fn turn_if_free(self: &Arc<Self>) -> Option<Turn> {
        self.seat.lock().turn_if_free(self)
    }

    fn turn_or_wait(self: &Arc<Self>) -> Result<Turn, Waiting<'_>> {
        let mut seat = self.seat.lock();
        seat.turn_if_free(self).ok_or_else(|| {
            let (wake, turn) = oneshot::channel();
            seat.arrivals += 1;
            let number = seat.arrivals;
            if let State::Held(sight) = &seat.state {
                sight.is_needed();
            }
            seat.waiting.push_back(Waiter { number, wake });
            Waiting::new(self, number, turn)
        })
    }

    /// How many come before this waiter, whoever has the turn included.
    fn ahead(&self, number: u64) -> usize {
        let seat = self.seat.lock();
        seat.waiting.binary_search_by_key(&number, |waiter| waiter.number).unwrap_or_else(|at| at) + 1
    }

    /// It waits no more.
    fn leave(&self, number: u64) {
        let mut seat = self.seat.lock();
        if let Ok(at) = seat.waiting.binary_search_by_key(&number, |waiter| waiter.number) {
            seat.waiting.remove(at);
        }
    }

    /// The turn with this number is over, and so is the place that came with it.
    fn end_turn(self: &Arc<Self>, number: u64, place: Option<Place>) {
        let mut seat = self.seat.lock();
        let left = if seat.turn == number { seat.advance(self, place) } else { place };
        drop(seat);
        drop(left);
    }

    /// Passes the place of a guard on, or keeps it for who comes next, or tells what is left to be released.
    fn give_back(self: &Arc<Self>, number: u64, hold: Hold, stay: &Arc<Stay>) -> Option<Left> {
        let mut seat = self.seat.lock();
        if seat.turn != number {
            // It was lost, and somebody else has had the turn since.
            return Some(Left::Hold(Box::new(hold)));
        }
        let is_waited_for = !seat.waiting.is_empty();
        let may_stay = match is_waited_for {
            true => stay.may_be_passed_on(),
            false => self.clones.strong_count() > 0 && stay.may_linger(),
        };
        let parked = if may_stay { hold.park() } else { Err(Box::new(hold)) };
        let parked = match parked {
            Ok(parked) => parked,
            Err(hold) => {
                seat.advance(self, None);
                return Some(Left::Hold(hold));
            }
        };
        let (parked, stay) = seat.advance(self, Some((parked, Arc::clone(stay))))?;
        if !stay.may_linger() {
            return Some(Left::Parked(Box::new(parked)));
        }
        stay.lingers();
        seat.state = State::Lingering(parked, stay, Deadline::after(self.keep.linger));
        None
    }

    /// A guard rests on this node now.
    fn is_held(self: &Arc<Self>, number: u64, sight: &Arc<Sight>) {
        let mut seat = self.seat.lock();
        if seat.turn == number {
            seat.state = State::Held(Arc::clone(sight));
            if !seat.waiting.is_empty() {
                sight.is_needed();
            }
        }
    }

    /// What is seen so is lost: whoever holds it keeps nobody waiting here.
    fn is_lost(self: &Arc<Self>, sight: &Arc<Sight>) {
        let mut seat = self.seat.lock();
        if matches!(&seat.state, State::Held(held) if Arc::ptr_eq(held, sight)) {
            seat.advance(self, None);
        }
    }

    /// Until when a node that is seen so lingers, if it does.
    fn lingers_until(&self, sight: &Arc<Sight>) -> Option<Deadline> {
        match &self.seat.lock().state {
            State::Lingering(_, stay, until) if stay.is_seen_by(sight) => Some(*until),
            _ => None,
        }
    }

    /// Gives a node that is seen so up if it lingers; `only_if_over`: if its time is over.
    fn end_linger(&self, sight: &Arc<Sight>, only_if_over: bool) {
        let mut seat = self.seat.lock();
        let is_to_go = matches!(&seat.state, State::Lingering(_, stay, until)
            if stay.is_seen_by(sight) && (!only_if_over || until.has_passed()));
        if is_to_go {
            let left = std::mem::replace(&mut seat.state, State::Vacant);
            drop(seat);
            drop(left);
        }
    }
}

impl Seat {
    fn turn_if_free(&mut self, keeper: &Arc<Keeper>) -> Option<Turn> {
        let place = match std::mem::replace(&mut self.state, State::Taken) {
            State::Vacant => None,
            State::Lingering(parked, stay, _) => Some((parked, stay)),
            busy => {
                self.state = busy;
                return None;
            }
        };
        self.turn += 1;
        Some(Turn::new(keeper, self.turn, place))
    }

    /// The next one's turn, with the place; what is left of that when nobody waits.
    fn advance(&mut self, keeper: &Arc<Keeper>, mut place: Option<Place>) -> Option<Place> {
        self.turn += 1;
        while let Some(next) = self.waiting.pop_front() {
            match next.wake.send(Turn::new(keeper, self.turn, place)) {
                Ok(()) => {
                    self.state = State::Taken;
                    return None;
                }
                Err(turn) => place = turn.taken_back(),
            }
        }
        self.state = State::Vacant;
        place
    }
}

/// A hold that is not bound to its turn yet.
struct Unbound {
    hold: Hold,
    stay: Arc<Stay>,
}

impl Unbound {
    fn with(self, turn: Turn) -> Kept {
        Kept::new(self.hold, self.stay, turn)
    }
}

impl Debug for Keeper {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Keeper").field("keep", &self.keep).finish_non_exhaustive()
    }
}
