//! The attempts of a change that may be applied: pure.

use super::decide::{Basis, Content, is_same_write};

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

    /// Whether one of the attempts creates the node.
    pub(super) fn has_creates(&self) -> bool {
        self.attempts.iter().any(|doubt| doubt.basis.is_none())
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

    /// An attempt from this state was refused: its writer node was as before, and the node was not. So no
    /// attempt from this state or an earlier one was applied, and none will be.
    pub(super) fn refute(&mut self, stale: &Content) {
        let is_newer = |basis: &Basis| basis.as_ref().is_none_or(|content| content.mzxid > stale.mzxid);
        self.attempts.retain(|doubt| is_newer(&doubt.basis));
    }

    /// What the present state of the node tells about attempts with a writer node that tells nothing. Not all
    /// of them were made from the same state: one that was applied makes the state for the next. A node that
    /// does not exist tells nothing: it may have been created and deleted.
    pub(super) fn judge(&self, now: &Basis) -> Finding {
        let is_refuted = |doubt: &Doubt| doubt.basis.is_some() && is_same_write(&doubt.basis, now);
        match self.has_other_writer && !self.attempts.iter().all(is_refuted) {
            true => Finding::Unknown,
            false => Finding::NotApplied,
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
    use super::super::decide::Content;
    use super::*;
    use crate::znode::zxid::Zxid;

    fn content(mzxid: i64) -> Basis {
        Some(Content { data: [].into(), czxid: Zxid::new(1), mzxid: Zxid::new(mzxid), version: 0 })
    }

    #[test]
    fn an_attempt_of_an_earlier_writer_is_refuted_only_by_an_unchanged_node() {
        let mut doubts = Doubts::default();
        assert_eq!(doubts.judge(&content(9)), Finding::NotApplied, "nothing is in doubt");
        doubts.add(1, "/a/writer-1", &content(4));
        doubts.add(2, "/a/writer-1", &content(4));
        assert_eq!(doubts.judge(&content(5)), Finding::NotApplied, "the writer node would tell");
        assert!(!doubts.may_have_changed_the_node());
        doubts.leave_writer();
        assert!(doubts.may_have_changed_the_node());
        assert_eq!(doubts.judge(&content(4)), Finding::NotApplied);
        assert_eq!(doubts.judge(&content(5)), Finding::Unknown);
        assert_eq!(doubts.judge(&None), Finding::Unknown);
        assert!(!doubts.is_writer_used());
        doubts.add(3, "/a/writer-2", &content(4));
        assert!(doubts.is_writer_used() && doubts.may_have_changed_the_node(), "the earlier ones may have");
        assert_eq!((doubts.writer(), doubts.basis_of(1)), (Some("/a/writer-2"), Some(&content(4))));
    }

    /// The first attempt may have made the state of the second one.
    #[test]
    fn attempts_from_two_states_are_not_all_refuted_by_one_of_them() {
        let mut doubts = Doubts::default();
        doubts.add(1, "/a/writer-1", &content(3));
        doubts.add(2, "/a/writer-1", &content(4));
        doubts.leave_writer();
        assert_eq!(doubts.judge(&content(4)), Finding::Unknown);
    }

    #[test]
    fn a_refused_attempt_refutes_those_from_its_state_and_earlier_ones() {
        let mut doubts = Doubts::default();
        doubts.add(1, "/a/writer-1", &content(3));
        doubts.add(2, "/a/writer-1", &content(5));
        doubts.add(3, "/a/writer-1", &content(4));
        doubts.refute(content(4).as_ref().unwrap());
        assert_eq!((doubts.basis_of(1), doubts.basis_of(3)), (None, None));
        doubts.leave_writer();
        assert_eq!(doubts.judge(&content(5)), Finding::NotApplied);
        assert_eq!(doubts.judge(&content(6)), Finding::Unknown, "a late one may be applied to a later state");
    }

    #[test]
    fn an_attempt_to_create_the_node_is_not_refuted_by_a_node_that_does_not_exist() {
        let mut doubts = Doubts::default();
        doubts.add(1, "/a-creation-1", &None);
        assert!(doubts.has_creates());
        doubts.leave_writer();
        assert_eq!(doubts.judge(&None), Finding::Unknown);
    }
}
