//! Which contender waits for which: pure, and decided only here.

use crate::local::decide::ContenderKind;
use std::sync::Arc;

use crate::znode::name::{Kind, Label, LabelError, NodeName};
use crate::znode::zxid::Zxid;

/// Which lower nodes a contender waits for.
///
/// # Examples
///
/// ```
/// use lockkeeper_core::{Kind, Rule};
///
/// // A reader waits for writers and shares with readers; anything else on its path is a mistake.
/// let reader = Rule::blocked_by(&[Kind::WRITE]).sharing_with(&[Kind::READ]);
/// # let _ = reader;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    blocks: &'static [Kind],
    shares: &'static [Kind],
    relist_after: &'static [Kind],
    sequence_only: bool,
}

impl Rule {
    /// A mutex: every lower lock node blocks.
    pub const MUTEX: Self = Self::blocked_by(&[Kind::LOCK]);

    /// A reader: waits for earlier writers, and shares with readers.
    pub const READER: Self = Self::blocked_by(&[Kind::WRITE]).sharing_with(&[Kind::READ]).sequence_only();

    /// A writer: waits for all earlier contenders.
    pub const WRITER: Self =
        Self::blocked_by(&[Kind::READ, Kind::WRITE]).relist_after(&[Kind::WRITE]).sequence_only();

    /// A contender that waits for every lower node of these kinds.
    #[must_use]
    pub const fn blocked_by(kinds: &'static [Kind]) -> Self {
        Self { blocks: kinds, shares: &[], relist_after: &[], sequence_only: false }
    }

    /// Kinds that may share the path without blocking.
    #[must_use]
    pub const fn sharing_with(self, kinds: &'static [Kind]) -> Self {
        Self { shares: kinds, ..self }
    }

    /// Kinds whose delete may make a *lower* node appear, so that the directory must be listed again before
    /// any grant.
    ///
    /// A writer that downgrades leaves a read node with its own, lower, number (CURATOR-621).
    #[must_use]
    pub const fn relist_after(self, kinds: &'static [Kind]) -> Self {
        Self { relist_after: kinds, ..self }
    }

    /// Forbids to order by creation where sequence numbers no longer give the order: a node may have the
    /// sequence number of another, older one. Waiting then ends with an
    /// [error](crate::Error::SequenceExhausted).
    #[must_use]
    pub const fn sequence_only(self) -> Self {
        Self { sequence_only: true, ..self }
    }

    /// Checks that each contender's name determines its kind.
    pub(crate) fn check_labels(&self) -> Result<(), LabelError> {
        self.labels().try_for_each(|one| self.labels().try_for_each(|other| one.check_beside(other)))
    }

    /// Reads the name of a child of the directory.
    pub(crate) fn parse(&self, name: &str) -> Option<NodeName> {
        NodeName::parse_among(name, self.labels())
    }

    /// The labels of the contenders that the rule knows.
    pub(crate) fn labels(&self) -> impl Iterator<Item = Label> + Clone + use<> {
        self.blocks.iter().chain(self.shares).map(|kind| kind.label())
    }

    /// Whether a contender of this kind waits for every contender ahead, and shares with none.
    pub(crate) fn is_exclusive(&self, kind: Kind) -> bool {
        *self == Self { blocks: self.blocks, ..Self::MUTEX } && self.blocks(kind)
    }

    /// How the local queue treats a contender of this kind with this rule. `None` if sequence numbers alone
    /// determine nothing about the contenders ahead.
    pub(crate) fn contender_kind(&self, kind: Kind) -> Option<ContenderKind> {
        match *self {
            Self::READER => (kind == Kind::READ).then_some(ContenderKind::Read),
            Self::WRITER => (kind == Kind::WRITE).then_some(ContenderKind::Write),
            _ => self.is_exclusive(kind).then_some(ContenderKind::Lock(kind)),
        }
    }

    /// Whether the other contenders see a contender of this kind.
    pub(crate) fn admits(&self, kind: Kind) -> bool {
        self.blocks.contains(&kind) || self.shares.contains(&kind)
    }

    /// Whether a contender waits for a lower node of this kind. The grant of a hold rests on the same rule.
    #[must_use]
    pub fn blocks(&self, kind: Kind) -> bool {
        self.blocks.contains(&kind)
    }

    pub(crate) fn is_sequence_only(&self) -> bool {
        self.sequence_only
    }

    pub(crate) fn must_relist_after(&self, gone: &NodeName) -> bool {
        !gone.has_ordered_sequence() || self.relist_after.contains(&gone.kind())
    }

    /// Judges a list of the queue's directory for the contender named `me`.
    ///
    /// Only lower nodes count, and no lower node can be created any more. So a stale list can make a
    /// contender wait too long, but never grant too early.
    ///
    /// `ignored` are own nodes that never block the contender.
    pub(crate) fn judge(&self, children: &[String], me: &str, ignored: &[Arc<str>]) -> ListJudgement {
        let others = children.iter().filter(|child| ignored.iter().all(|own| **own != **child));
        let queue: Vec<NodeName> = others.filter_map(|child| self.parse(child)).collect();
        let Some(mine) = queue.iter().find(|node| node.as_str() == me) else {
            return ListJudgement::Gone;
        };
        let mut contenders = Vec::new();
        for node in queue.iter().filter(|node| node.as_str() != me) {
            if self.blocks.contains(&node.kind()) {
                contenders.push(node.clone());
            } else if !self.shares.contains(&node.kind()) && node.kind() != mine.kind() {
                return ListJudgement::ConflictingKind(node.clone());
            }
        }
        let is_ordered = mine.has_ordered_sequence()
            && contenders
                .iter()
                .all(|node| node.has_ordered_sequence() && node.sequence() != mine.sequence());
        if self.sequence_only && !is_ordered {
            return ListJudgement::SequenceExhausted;
        }
        if !is_ordered && !contenders.is_empty() {
            return ListJudgement::CompareCzxid(contenders);
        }
        contenders.retain(|node| node.sequence() < mine.sequence());
        contenders.sort_by_key(NodeName::sequence);
        ListJudgement::of(contenders)
    }

    /// Judges by the order of creation, where sequence numbers do not give the order.
    pub(crate) fn judge_by_creation(mut contenders: Vec<(Zxid, NodeName)>, my_czxid: Zxid) -> ListJudgement {
        contenders.retain(|(czxid, _)| *czxid < my_czxid);
        contenders.sort_by_key(|(czxid, _)| *czxid);
        ListJudgement::of(contenders.into_iter().map(|(_, node)| node).collect())
    }
}

/// What a list says about one contender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListJudgement {
    /// No lower node blocks: the contender is the head.
    Held,
    /// These lower nodes block, lowest first. Never empty.
    WaitFor(Vec<NodeName>),
    /// The contender's own node is not in the list.
    Gone,
    /// Sequence numbers do not give the order: compare the creation zxid with those of these nodes.
    CompareCzxid(Vec<NodeName>),
    /// Neither sequence numbers nor creation zxids give the order.
    SequenceExhausted,
    /// A contender of another kind of lock uses this path.
    ConflictingKind(NodeName),
}

impl ListJudgement {
    fn of(lower: Vec<NodeName>) -> Self {
        if lower.is_empty() { Self::Held } else { Self::WaitFor(lower) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(all: &[&str]) -> Vec<String> {
        all.iter().map(|name| (*name).to_owned()).collect()
    }

    fn blockers(verdict: ListJudgement) -> Vec<i32> {
        match verdict {
            ListJudgement::Held => Vec::new(),
            ListJudgement::WaitFor(lower) => lower.iter().map(NodeName::sequence).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_lowest_node_holds_and_the_others_wait_for_the_lower_ones() {
        let queue = names(&["b-lock-0000000009", "a-lock-0000000010", "z-lock-0000000002", "readme"]);
        assert_eq!(Rule::MUTEX.judge(&queue, "z-lock-0000000002", &[]), ListJudgement::Held);
        assert_eq!(blockers(Rule::MUTEX.judge(&queue, "b-lock-0000000009", &[])), [2]);
        assert_eq!(blockers(Rule::MUTEX.judge(&queue, "a-lock-0000000010", &[])), [2, 9]);
    }

    #[test]
    fn a_rule_knows_its_own_labels() {
        const TURN: Label = match Label::new("turn-") {
            Ok(label) => label,
            Err(_) => panic!("not a label"),
        };
        const RULE: Rule = Rule::blocked_by(&[TURN.kind()]);
        let rule = RULE;
        let queue = names(&["b-turn-0000000009", "me-turn-0000000010"]);
        assert_eq!(blockers(rule.judge(&queue, "me-turn-0000000010", &[])), [9]);
        let queue = names(&["b-turn--1999999999", "me-turn-0000000010"]);
        assert!(matches!(rule.judge(&queue, "me-turn-0000000010", &[]), ListJudgement::CompareCzxid(_)));
        for other in ["b-lock-0000000009", "b-gate-0000000009"] {
            let queue = names(&[other, "me-turn-0000000010"]);
            let verdict = rule.judge(&queue, "me-turn-0000000010", &[]);
            assert!(matches!(verdict, ListJudgement::ConflictingKind(_)), "{other}: {verdict:?}");
        }
        let queue = names(&["b-turn-0000000009", "me-lock-0000000010"]);
        let verdict = Rule::MUTEX.judge(&queue, "me-lock-0000000010", &[]);
        assert!(
            matches!(verdict, ListJudgement::ConflictingKind(_)),
            "a mutex on the same path: {verdict:?}"
        );
    }

    #[test]
    fn sequence_numbers_tell_where_each_contender_waits_for_all_or_for_the_writers() {
        const TURN: Kind = Kind::LEASE;
        const EXCLUSIVE: Rule = Rule::blocked_by(&[TURN]);
        assert_eq!(Rule::MUTEX.contender_kind(Kind::LOCK), Some(ContenderKind::Lock(Kind::LOCK)));
        assert_eq!(Rule::READER.contender_kind(Kind::READ), Some(ContenderKind::Read));
        assert_eq!(Rule::WRITER.contender_kind(Kind::WRITE), Some(ContenderKind::Write));
        assert_eq!(EXCLUSIVE.contender_kind(TURN), Some(ContenderKind::Lock(TURN)));
        for (rule, kind) in [
            (Rule::MUTEX, Kind::READ),
            (Rule::READER, Kind::WRITE),
            (Rule::WRITER, Kind::READ),
            (EXCLUSIVE.sharing_with(&[Kind::LOCK]), TURN),
            (EXCLUSIVE.relist_after(&[TURN]), TURN),
            (EXCLUSIVE.sequence_only(), TURN),
        ] {
            assert_eq!(rule.contender_kind(kind), None, "{rule:?} {kind:?}");
        }
    }

    #[test]
    fn a_listing_without_my_node_never_grants() {
        assert_eq!(Rule::MUTEX.judge(&[], "a-lock-0000000001", &[]), ListJudgement::Gone);
        assert_eq!(
            Rule::MUTEX.judge(&names(&["b-lock-0000000002"]), "a-lock-0000000001", &[]),
            ListJudgement::Gone
        );
    }

    #[test]
    fn a_lock_node_of_another_library_blocks() {
        let queue = names(&["0f__lock__0000000001", "_c_ab-lock-0000000002", "me-lock-0000000003"]);
        assert_eq!(blockers(Rule::MUTEX.judge(&queue, "me-lock-0000000003", &[])), [1, 2]);
    }

    #[test]
    fn a_contender_of_zookeepers_own_recipes_on_the_path_is_reported() {
        // `WriteLock`, `zkr_lock`, `LeaderElectionSupport`, and an item of their queues.
        for other in ["x-72057594037927936-", "x-0100000000000000-", "n_", "qn-"] {
            let queue = names(&[&format!("{other}0000000001"), "me-lock-0000000002"]);
            let verdict = Rule::MUTEX.judge(&queue, "me-lock-0000000002", &[]);
            assert!(matches!(verdict, ListJudgement::ConflictingKind(_)), "{other}: {verdict:?}");
        }
    }

    #[test]
    fn another_kind_of_lock_on_the_path_is_reported() {
        let queue = names(&["me-lock-0000000001", "r-__READ__0000000002"]);
        assert!(matches!(
            Rule::MUTEX.judge(&queue, "me-lock-0000000001", &[]),
            ListJudgement::ConflictingKind(_)
        ));
    }

    #[test]
    fn a_reader_waits_for_earlier_writers_only() {
        let queue = names(&[
            "a-__READ__0000000001",
            "b-__WRIT__0000000002",
            "c-__READ__0000000003",
            "d-__WRIT__0000000004",
        ]);
        assert_eq!(Rule::READER.judge(&queue, "a-__READ__0000000001", &[]), ListJudgement::Held);
        assert_eq!(blockers(Rule::READER.judge(&queue, "c-__READ__0000000003", &[])), [2]);
    }

    #[test]
    fn what_is_ones_own_is_never_in_the_way() {
        let queue = names(&["a-__READ__0000000001", "b-__READ__0000000002", "me-__WRIT__0000000003"]);
        let own = ["a-__READ__0000000001".into(), "b-__READ__0000000002".into()];
        assert_eq!(Rule::WRITER.judge(&queue, "me-__WRIT__0000000003", &own), ListJudgement::Held);
        assert_eq!(blockers(Rule::WRITER.judge(&queue, "me-__WRIT__0000000003", &own[..1])), [2]);
    }

    #[test]
    fn where_the_counter_ends_the_numbers_are_not_believed() {
        for other in ["b-lock-2147483647", "b-lock--2147483648", "b-lock--000000001"] {
            let queue = names(&["me-lock-2147483646", other]);
            let verdict = Rule::MUTEX.judge(&queue, "me-lock-2147483646", &[]);
            assert!(matches!(verdict, ListJudgement::CompareCzxid(_)), "{other}: {verdict:?}");
        }
        let queue = names(&["me-lock-0000000005", "b-lock-0000000005"]);
        assert!(matches!(
            Rule::MUTEX.judge(&queue, "me-lock-0000000005", &[]),
            ListJudgement::CompareCzxid(_)
        ));
        assert_eq!(
            Rule::MUTEX.judge(&names(&["me-lock-2147483647"]), "me-lock-2147483647", &[]),
            ListJudgement::Held
        );
    }

    #[test]
    fn creation_order_decides_there() {
        let node = |name: &str| NodeName::parse(name).unwrap();
        let others = [(9, node("a-lock-2147483647")), (12, node("b-lock--2147483648"))]
            .map(|(czxid, name)| (Zxid::new(czxid), name))
            .to_vec();
        assert_eq!(Rule::judge_by_creation(others.clone(), Zxid::new(8)), ListJudgement::Held);
        assert_eq!(
            Rule::judge_by_creation(others, Zxid::new(10)),
            ListJudgement::WaitFor(vec![node("a-lock-2147483647")])
        );
    }

    #[test]
    fn a_writer_that_went_makes_a_writer_look_again() {
        let writer = Rule::blocked_by(&[Kind::READ, Kind::WRITE]).relist_after(&[Kind::WRITE]);
        assert!(writer.must_relist_after(&NodeName::parse("a-__WRIT__0000000001").unwrap()));
        assert!(!writer.must_relist_after(&NodeName::parse("a-__READ__0000000001").unwrap()));
        assert!(Rule::MUTEX.must_relist_after(&NodeName::parse("a-lock-2147483647").unwrap()));
    }

    proptest! {
        #[test]
        fn exactly_one_contender_of_a_mutex_holds(
            mut sequences in prop::collection::hash_set(0..i32::MAX - 1, 1..20),
        ) {
            let queue: Vec<String> =
                sequences.drain().map(|sequence| format!("x-lock-{sequence:010}")).collect();
            let holds = |me: &&String| Rule::MUTEX.judge(&queue, me, &[]) == ListJudgement::Held;
            let held = queue.iter().filter(holds).count();
            prop_assert_eq!(held, 1);
        }

        #[test]
        fn a_listing_that_is_behind_only_makes_one_wait_longer(
            sequences in prop::collection::hash_set(0..10_000i32, 2..20), keep: prop::sample::Index,
        ) {
            // The later list still has `me`, since the contender has not left; lower nodes may have been
            // deleted meanwhile.
            let earlier: Vec<String> =
                sequences.iter().map(|sequence| format!("x-lock-{sequence:010}")).collect();
            let me = keep.get(&earlier).clone();
            let before = blockers(Rule::MUTEX.judge(&earlier, &me, &[]));
            let stays = |n: &&String| **n == me || n.len().is_multiple_of(2) || n.as_str() > me.as_str();
            let later: Vec<String> = earlier.iter().filter(stays).cloned().collect();
            let after = blockers(Rule::MUTEX.judge(&later, &me, &[]));
            prop_assert!(after.iter().all(|sequence| before.contains(sequence)));
        }
    }
}
