//! The two sides of a lock, and what an acquire of one has to do for an owner that holds the lock: pure.

/// One side of a lock. A mutex has only the side to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Read,
    Write,
}

/// What an acquire of a side has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Nothing: the guard shares the owner's hold of this side.
    Share,
    /// Create a read node beside the owner's own write node.
    AddReader,
    /// Queue as a contender.
    Queue,
    /// Fail: the contender would wait for its own owner.
    Refuse,
}

impl Side {
    /// The action for an owner with these fencing tokens: of its write hold, and of its newest read hold.
    ///
    /// The token of a read under a write is not smaller than that of the write. A resource that has seen the
    /// token of the write would refuse a smaller one.
    pub(super) fn action<T: PartialOrd>(self, write: Option<T>, read: Option<T>) -> Action {
        match (self, write, read) {
            (_, None, None) => Action::Queue,
            (Self::Write, Some(_), _) => Action::Share,
            (Self::Write, None, Some(_)) => Action::Refuse,
            (Self::Read, None, Some(_)) => Action::Share,
            (Self::Read, Some(write), Some(read)) if read >= write => Action::Share,
            (Self::Read, Some(_), _) => Action::AddReader,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_without_a_hold_queues() {
        assert_eq!(Side::Read.action::<u8>(None, None), Action::Queue);
        assert_eq!(Side::Write.action::<u8>(None, None), Action::Queue);
    }

    #[test]
    fn a_writer_may_write_and_read_again() {
        assert_eq!(Side::Write.action(Some(5), None), Action::Share);
        assert_eq!(Side::Write.action(Some(5), Some(5)), Action::Share);
        assert_eq!(Side::Read.action(Some(5), None), Action::AddReader);
        assert_eq!(Side::Read.action(Some(5), Some(5)), Action::Share);
    }

    #[test]
    fn a_reader_may_read_again_and_never_wait_to_write() {
        assert_eq!(Side::Read.action(None, Some(5)), Action::Share);
        assert_eq!(Side::Write.action(None, Some(5)), Action::Refuse);
    }

    #[test]
    fn a_read_under_a_write_has_no_smaller_token() {
        // The owner read before it upgraded, and still reads.
        assert_eq!(Side::Read.action(Some(9), Some(4)), Action::AddReader);
    }
}
