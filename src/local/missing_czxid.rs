//! Predicts the sequence number of the next create, for servers that return no creation zxid with a create in
//! a transaction (before 3.8.2, ZOOKEEPER-4026). The contender can read its node in the same round trip if it
//! knows the name in advance.

/// The history of the creates without a creation zxid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct MissingCzxid {
    /// The last sequence number, and whether it followed the previous one.
    last: Option<(i32, bool)>,
}

impl MissingCzxid {
    /// The server returned this sequence number without a creation zxid.
    pub(crate) fn record(&mut self, sequence: i32) {
        let follows = self.last.is_some_and(|(last, _)| last.checked_add(1) == Some(sequence));
        self.last = Some((sequence, follows));
    }

    /// The sequence number that the next create is likely to get.
    pub(crate) fn next_sequence(&self) -> Option<i32> {
        self.last.filter(|(_, follows)| *follows)?.0.checked_add(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_consecutive_numbers_predict_the_next() {
        let mut missing = MissingCzxid::default();
        assert_eq!(missing.next_sequence(), None);
        missing.record(4);
        assert_eq!(missing.next_sequence(), None);
        missing.record(5);
        assert_eq!(missing.next_sequence(), Some(6));
        missing.record(8);
        assert_eq!(missing.next_sequence(), None);
        missing.record(i32::MAX);
        assert_eq!(missing.next_sequence(), None);
    }
}
