//! What is explored: the contenders, the faults that may happen, and the mistake that is planted.

use crate::local::decide::ContenderKind;

/// A mistake that is planted in the code around the queue, or in the queue's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mistake {
    /// A head that was released over another connection counts as released over the present one.
    ReleasedOverAnotherConnection,
    /// A watch on the directory that was set over an earlier connection counts.
    EarlierDirectoryWatch,
    /// A released head counts even if the directory may be another one.
    AnyDirectory,
    /// The delete of the head does not check the successor's node.
    HandOffWithoutCheck,
    /// A writer is granted by a hand-off.
    WriterWithoutList,
    /// A waiter in the middle of the queue is released as the head.
    WaiterHandsOff,
    /// A waiter is not woken when its predecessor leaves the queue otherwise than as the head.
    NoRelist,
    /// A waiter for an earlier create is not woken.
    NoSequenceWake,
    /// A contender takes a grant whose connection broke before.
    GrantOfEarlierConnection,
    /// The transaction that replaces a hold does not check the successor's node.
    ExchangeWithoutCheck,
}

/// How many faults may still happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Faults {
    pub(super) hand_deletes: u8,
    pub(super) breaks: u8,
    pub(super) swaps: u8,
    pub(super) cancels: u8,
    pub(super) reaps: u8,
}

impl Faults {
    pub(super) fn count(self) -> u8 {
        self.hand_deletes + self.breaks + self.swaps + self.cancels + self.reaps
    }
}

/// What is explored.
#[derive(Clone, Debug)]
pub(super) struct Scenario {
    /// The session, the kind, and the number of holds.
    pub(super) contenders: Vec<(usize, ContenderKind, u8)>,
    /// Whether the session has a local queue. Sessions of this library do, foreign ones do not.
    pub(super) queues: Vec<bool>,
    pub(super) faults: Faults,
    /// Holds may end by an exchange.
    pub(super) exchanges: bool,
    /// How many times the first contender holds, alone, before the exploration begins.
    pub(super) warm_rounds: u8,
    pub(super) mistake: Option<Mistake>,
}

impl Scenario {
    pub(super) fn has(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    /// An earlier contender that nothing distinguishes from this one until one of them starts.
    pub(super) fn twin_before(&self, number: usize) -> Option<usize> {
        let (session, kind, rounds) = self.contenders[number];
        let is_alone = |session| self.contenders.iter().filter(|other| other.0 == session).count() == 1;
        (0..number).rev().find(|earlier| {
            let (other, other_kind, other_rounds) = self.contenders[*earlier];
            let are_sessions_alike = self.warm_rounds == 0
                && self.queues[other] == self.queues[session]
                && is_alone(other)
                && is_alone(session);
            (kind, rounds) == (other_kind, other_rounds) && (session == other || are_sessions_alike)
        })
    }

    /// How many nodes the contender has created when the exploration begins.
    pub(super) fn warm_attempts(&self, number: usize) -> u8 {
        if number == 0 { self.warm_rounds } else { 0 }
    }
}
