//! The prediction of a create's outcome: whether a list has to be sent with the create.
//!
//! A prediction is never a proof. A wrong one costs a round trip, but grants nothing.

use super::contender_kind::ContenderKind;

/// This many consecutive creates must have followed another node of this session before the next one is
/// expected to follow.
const CONSECUTIVE_CREATES_MIN: u8 = 2;

/// What a create is likely to find ahead of its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Prediction {
    /// Nothing is known. A list is sent with the create, and the contender may be the head.
    Unknown,
    /// The last list showed a predecessor. A list is sent with the create.
    Contended,
    /// A node of this session will be the predecessor. The sequence number proves that, so no list is sent.
    BehindOwn,
    /// No predecessor: the node gets the number after this released head of this session. No list is sent.
    AfterOwn(i32),
}

impl Prediction {
    /// Whether no list is sent with the create.
    pub(crate) fn skips_list(self) -> bool {
        matches!(self, Self::BehindOwn | Self::AfterOwn(_))
    }

    /// Whether the contender may be the head as soon as its node exists.
    pub(crate) fn may_grant_at_once(self) -> bool {
        matches!(self, Self::Unknown | Self::AfterOwn(_))
    }
}

/// What is known when a create is about to be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BeforeCreate {
    pub(crate) kind: ContenderKind,
    pub(crate) connection: u64,
    /// Another create of this session is pending in this directory.
    pub(crate) has_pending: bool,
    /// The node with the last sequence number exists.
    pub(crate) last_exists: bool,
    /// The node with the last sequence number was released as the head, and the directory is unchanged since.
    pub(crate) directory_unchanged: bool,
}

/// What earlier creates of this session in this directory have shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct PredictionHistory {
    /// The greatest sequence number of this session, and the connection over which it came.
    last_sequence: Option<(i32, u64)>,
    /// How many creates in a row got the number after another node of this session.
    consecutive_creates: u8,
    /// The last list that was sent with a create showed a predecessor.
    last_list_contended: bool,
    /// A foreign create got a number between two of this session, and too few consecutive ones have followed
    /// since.
    foreign_interleaved: bool,
}

impl PredictionHistory {
    /// The greatest sequence number that came over this connection.
    pub(crate) fn last_sequence(&self, connection: u64) -> Option<i32> {
        self.last_sequence.filter(|(_, on)| *on == connection).map(|(sequence, _)| sequence)
    }

    /// Predicts the outcome of a create.
    pub(crate) fn predict(&self, before: BeforeCreate) -> Prediction {
        let BeforeCreate { kind, connection, has_pending, last_exists, directory_unchanged } = before;
        let Some(last) = self.last_sequence(connection) else {
            // Of many creates that are sent at once, only the first one lists.
            return if has_pending { Prediction::BehindOwn } else { Prediction::Unknown };
        };
        if has_pending && !self.foreign_interleaved && last >= 0 {
            return Prediction::BehindOwn;
        }
        if !self.expects_consecutive() || last < 0 {
            return if self.last_list_contended { Prediction::Contended } else { Prediction::Unknown };
        }
        if has_pending || last_exists {
            return Prediction::BehindOwn;
        }
        // Next to a released reader or writer, other nodes may exist that a writer has to wait for.
        match kind != ContenderKind::Write && directory_unchanged {
            true => Prediction::AfterOwn(last),
            false => Prediction::Unknown,
        }
    }

    /// Whether the last creates have shown that the next one is likely to follow another node of this
    /// session.
    pub(crate) fn expects_consecutive(&self) -> bool {
        self.consecutive_creates >= CONSECUTIVE_CREATES_MIN
    }

    /// A create got this number. `follows_own` if the number before it is another node's of this session.
    pub(crate) fn record_create(&mut self, sequence: i32, connection: u64, follows_own: bool) {
        self.consecutive_creates = if follows_own {
            // No more than the minimum, so that equal histories are equal.
            self.consecutive_creates.saturating_add(1).min(CONSECUTIVE_CREATES_MIN)
        } else {
            0
        };
        let last = self.last_sequence(connection);
        let is_after_foreign = !follows_own && last.is_some();
        self.foreign_interleaved =
            !self.expects_consecutive() && (self.foreign_interleaved || is_after_foreign);
        if last.is_none_or(|last| last < sequence) {
            self.last_sequence = Some((sequence, connection));
        }
    }

    /// The list that was sent with a create showed a predecessor, or none.
    pub(crate) fn record_list(&mut self, contended: bool) {
        self.last_list_contended = contended;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::znode::name::Kind;

    const BEFORE: BeforeCreate = BeforeCreate {
        kind: ContenderKind::Lock(Kind::LOCK),
        connection: 1,
        has_pending: false,
        last_exists: false,
        directory_unchanged: false,
    };

    fn history(creates: &[(i32, bool)]) -> PredictionHistory {
        let mut history = PredictionHistory::default();
        creates.iter().for_each(|(sequence, follows)| history.record_create(*sequence, 1, *follows));
        history
    }

    #[test]
    fn a_list_is_sent_unless_a_number_may_prove_the_predecessor_or_that_there_is_none() {
        for (prediction, skips_list, may_grant) in [
            (Prediction::Unknown, false, true),
            (Prediction::Contended, false, false),
            (Prediction::BehindOwn, true, false),
            (Prediction::AfterOwn(4), true, true),
        ] {
            assert_eq!(prediction.skips_list(), skips_list, "{prediction:?}");
            assert_eq!(prediction.may_grant_at_once(), may_grant, "{prediction:?}");
        }
    }

    #[test]
    fn of_many_first_creates_only_one_lists() {
        let new = PredictionHistory::default();
        assert_eq!(new.predict(BEFORE), Prediction::Unknown);
        assert_eq!(new.predict(BeforeCreate { has_pending: true, ..BEFORE }), Prediction::BehindOwn);
    }

    #[test]
    fn behind_a_pending_create_no_list_is_sent_as_long_as_no_foreign_number_came() {
        let pending = BeforeCreate { has_pending: true, ..BEFORE };
        assert_eq!(history(&[(0, false)]).predict(pending), Prediction::BehindOwn);
        assert_eq!(history(&[(0, false), (1, true)]).predict(pending), Prediction::BehindOwn);
        assert_eq!(history(&[(0, false), (2, false)]).predict(pending), Prediction::Unknown);
        assert_eq!(history(&[(-3, false)]).predict(pending), Prediction::Unknown, "below zero");
    }

    #[test]
    fn the_list_is_left_out_after_two_consecutive_creates() {
        let once = history(&[(0, false), (1, true)]);
        let twice = history(&[(0, false), (1, true), (2, true)]);
        let exists = BeforeCreate { last_exists: true, ..BEFORE };
        let unchanged = BeforeCreate { directory_unchanged: true, ..BEFORE };
        assert_eq!(once.predict(exists), Prediction::Unknown);
        assert_eq!(twice.predict(exists), Prediction::BehindOwn);
        assert_eq!(twice.predict(unchanged), Prediction::AfterOwn(2));
        assert_eq!(twice.predict(BEFORE), Prediction::Unknown, "the directory may be another one");
    }

    #[test]
    fn a_writer_lists_after_a_released_head() {
        let twice = history(&[(0, false), (1, true), (2, true)]);
        let unchanged = BeforeCreate { kind: ContenderKind::Write, directory_unchanged: true, ..BEFORE };
        assert_eq!(twice.predict(unchanged), Prediction::Unknown);
    }

    #[test]
    fn a_foreign_number_in_between_ends_the_prediction() {
        let mut history = history(&[(0, false), (1, true), (2, true)]);
        history.record_create(4, 1, false);
        let pending = BeforeCreate { has_pending: true, ..BEFORE };
        assert_eq!(history.predict(pending), Prediction::Unknown);
        history.record_list(true);
        assert_eq!(history.predict(pending), Prediction::Contended);
        history.record_create(5, 1, true);
        assert_eq!(history.predict(pending), Prediction::Contended, "one that follows is not enough");
        history.record_create(6, 1, true);
        assert_eq!(history.predict(pending), Prediction::BehindOwn);
    }

    #[test]
    fn another_connection_starts_anew() {
        let twice = history(&[(0, false), (1, true), (2, true)]);
        let unchanged =
            BeforeCreate { connection: 2, last_exists: true, directory_unchanged: true, ..BEFORE };
        assert_eq!(twice.predict(unchanged), Prediction::Unknown);
    }

    #[test]
    fn below_zero_numbers_predict_nothing() {
        let history = history(&[(-3, false), (-2, true), (-1, true)]);
        let exists = BeforeCreate { last_exists: true, ..BEFORE };
        assert_eq!(history.predict(exists), Prediction::Unknown);
        let mut history = history;
        history.record_create(0, 1, true);
        assert_eq!(history.predict(exists), Prediction::BehindOwn, "zero is a number like any other");
    }
}
