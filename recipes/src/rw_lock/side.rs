//! The two sides, and what taking one comes to for an owner that holds something already: pure.

use lockkeeper_core::{Label, Rule};

/// Which side of the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Read,
    Write,
}

/// What taking a side comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// A further guard of the hold there is on this side.
    Again,
    /// A read node beside the owner's own write node.
    Beside,
    /// A place in the line.
    Queue,
    /// Waiting would be waiting for oneself.
    Never,
}

impl Side {
    pub(super) fn label(self) -> Label {
        match self {
            Self::Read => Label::READ,
            Self::Write => Label::WRITE,
        }
    }

    pub(super) fn rule(self) -> Rule {
        match self {
            Self::Read => Rule::READER,
            Self::Write => Rule::WRITER,
        }
    }

    /// The way there for an owner with these fencing tokens: that of its write, and that of its newest read.
    ///
    /// A read under a write has a token no smaller than the write's: a resource that has seen the writer's would
    /// refuse a smaller one.
    pub(super) fn way<T: PartialOrd>(self, write: Option<T>, read: Option<T>) -> Way {
        match (self, write, read) {
            (_, None, None) => Way::Queue,
            (Self::Write, Some(_), _) => Way::Again,
            (Self::Write, None, Some(_)) => Way::Never,
            (Self::Read, None, Some(_)) => Way::Again,
            (Self::Read, Some(write), Some(read)) if read >= write => Way::Again,
            (Self::Read, Some(_), _) => Way::Beside,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_holds_nothing_stands_in_line() {
        assert_eq!(Side::Read.way::<u8>(None, None), Way::Queue);
        assert_eq!(Side::Write.way::<u8>(None, None), Way::Queue);
    }

    #[test]
    fn a_writer_may_write_and_read_again() {
        assert_eq!(Side::Write.way(Some(5), None), Way::Again);
        assert_eq!(Side::Write.way(Some(5), Some(5)), Way::Again);
        assert_eq!(Side::Read.way(Some(5), None), Way::Beside);
        assert_eq!(Side::Read.way(Some(5), Some(5)), Way::Again);
    }

    #[test]
    fn a_reader_may_read_again_and_never_wait_to_write() {
        assert_eq!(Side::Read.way(None, Some(5)), Way::Again);
        assert_eq!(Side::Write.way(None, Some(5)), Way::Never);
    }

    #[test]
    fn a_read_under_a_write_has_no_smaller_token() {
        // An owner that read before it upgraded, and still reads.
        assert_eq!(Side::Read.way(Some(9), Some(4)), Way::Beside);
    }
}
