//! The attempts of a change that may be applied: pure.

use super::rule::{Basis, is_same_write};

/// Attempts without an answer.
#[derive(Debug, Default)]
pub(super) struct Doubts {
    attempts: Vec<Doubt>,
    /// Attempts were made with a writer node that is not used any more: of an earlier session, or deleted. So
    /// only the node tells whether they were applied.
    has_other_writer: bool,
    /// The writer node of the last attempt is still used.
    is_writer_used: bool,
}

/// An attempt without an answer.
#[derive(Debug)]
struct Doubt {
    number: u64,
    writer: String,
    basis: Basis,
}

/// What is known about the attempts.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// None was applied, and none will be if the next attempt is applied to the node as it is.
    NotApplied,
    /// The node was changed, perhaps by one of the attempts.
    Unknown,
}

impl Doubts {
    pub(super) fn is_empty(&self) -> bool {
        self.attempts.is_empty()
    }

    /// Records an attempt without an answer.
    pub(super) fn add(&mut self, number: u64, writer: &str, basis: &Basis) {
        let (writer, basis) = (writer.to_owned(), basis.clone());
        self.attempts.push(Doubt { number, writer, basis });
        self.is_writer_used = true;
    }

    /// The writer node of the last attempt.
    pub(super) fn writer(&self) -> Option<&str> {
        self.attempts.last().map(|doubt| doubt.writer.as_str())
    }

    /// The state from which the attempt with this number was made.
    pub(super) fn basis_of(&self, number: u64) -> Option<&Basis> {
        self.attempts.iter().find(|doubt| doubt.number == number).map(|doubt| &doubt.basis)
    }

    /// Records that another writer node is used from now on.
    pub(super) fn leave_writer(&mut self) {
        self.has_other_writer = !self.is_empty();
        self.is_writer_used = false;
    }

    /// Whether the writer node of the last attempt was not left yet.
    pub(super) fn is_writer_used(&self) -> bool {
        self.is_writer_used
    }

    /// What the present state of the node tells about attempts with a writer node that tells nothing.
    pub(super) fn judge(&self, now: &Basis) -> Finding {
        match self.attempts.last() {
            Some(doubt) if self.has_other_writer && !is_same_write(&doubt.basis, now) => Finding::Unknown,
            _ => Finding::NotApplied,
        }
    }

    /// The node was found to be another one than that of the last attempt. Whether that may be the work of an
    /// earlier attempt: not if the attempt that was refused would have met the writer node first.
    pub(super) fn may_have_changed_the_node(&self) -> bool {
        self.has_other_writer
    }
}

#[cfg(test)]
mod tests {
    use super::super::rule::Content;
    use super::*;

    fn content(mzxid: i64) -> Basis {
        Some(Content { data: [].into(), czxid: 1, mzxid, version: 0 })
    }

    #[test]
    fn an_attempt_of_an_earlier_writer_is_refuted_only_by_an_unchanged_node() {
        let mut doubts = Doubts::default();
        assert_eq!(doubts.judge(&content(9)), Finding::NotApplied, "nothing is in doubt");
        doubts.add(1, "/a/writer-1", &content(3));
        doubts.add(2, "/a/writer-1", &content(4));
        assert!(!doubts.may_have_changed_the_node(), "the writer node would tell");
        doubts.leave_writer();
        assert!(doubts.may_have_changed_the_node());
        assert_eq!(doubts.judge(&content(4)), Finding::NotApplied);
        assert_eq!(doubts.judge(&content(5)), Finding::Unknown);
        assert_eq!(doubts.judge(&None), Finding::Unknown);
        assert!(!doubts.is_writer_used());
        doubts.add(3, "/a/writer-2", &content(4));
        assert!(doubts.is_writer_used() && doubts.may_have_changed_the_node(), "the earlier ones may have");
        assert_eq!((doubts.writer(), doubts.basis_of(1)), (Some("/a/writer-2"), Some(&content(3))));
    }
}
