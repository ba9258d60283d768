//! Which contenders a rule lets on its path.

use std::iter;

use super::rule::{ListJudgement, Rule};
use crate::znode::name::{Kind, Label, LabelError};

fn judge(rule: Rule, queue: &[&str], me: &str) -> ListJudgement {
    let children: Vec<String> = queue.iter().map(|name| (*name).to_owned()).collect();
    rule.judge(&children, me, &[])
}

#[test]
fn a_rule_admits_whom_it_blocks_and_whom_it_shares_with() {
    for (rule, admitted) in [
        (Rule::MUTEX, &[Kind::LOCK][..]),
        (Rule::READER, &[Kind::READ, Kind::WRITE]),
        (Rule::WRITER, &[Kind::READ, Kind::WRITE]),
    ] {
        for kind in [Kind::LOCK, Kind::LEASE, Kind::READ, Kind::WRITE, Kind::LATCH, Kind::LIMIT] {
            assert_eq!(rule.admits(kind), admitted.contains(&kind), "{rule:?} {kind:?}");
        }
    }
}

#[test]
fn only_readers_and_writers_end_where_the_numbers_do() {
    assert!(Rule::READER.is_sequence_only() && Rule::WRITER.is_sequence_only());
    assert!(!Rule::MUTEX.is_sequence_only());
}

#[test]
fn a_contender_that_shares_or_is_of_the_same_kind_is_no_conflict() {
    const SAME: Rule = Rule::blocked_by(&[Kind::WRITE]);
    const SHARED: Rule = SAME.sharing_with(&[Kind::LEASE]);
    let me = "me-__READ__0000000002";
    assert_eq!(judge(SAME, &["a-__READ__0000000001", me], me), ListJudgement::Held);
    assert_eq!(judge(SHARED, &["a-lease-0000000001", me], me), ListJudgement::Held);
    for other in ["a-lease-0000000001", "a-lock-0000000003"] {
        let judged = judge(SAME, &[other, me], me);
        assert!(matches!(judged, ListJudgement::ConflictingKind(_)), "{other}: {judged:?}");
    }
}

#[test]
fn no_label_of_a_rule_is_the_end_of_another_one() {
    const fn kind(text: &'static str) -> Kind {
        match Label::new(text) {
            Ok(label) => label.kind(),
            Err(_) => panic!("not a label"),
        }
    }
    const TURN: Kind = kind("turn-");
    const RETURN: Kind = kind("return-");
    const GATE: Kind = kind("gate-");
    const AMBIGUOUS: [Rule; 2] =
        [Rule::blocked_by(&[TURN, RETURN]), Rule::blocked_by(&[RETURN]).sharing_with(&[TURN])];
    for rule in AMBIGUOUS {
        assert!(matches!(rule.check_labels(), Err(LabelError::Ambiguous { .. })), "{rule:?}");
    }
    const DISTINCT: Rule = Rule::blocked_by(&[TURN, GATE]);
    for rule in iter::once(DISTINCT).chain([Rule::MUTEX, Rule::READER, Rule::WRITER]) {
        assert_eq!(rule.check_labels(), Ok(()), "{rule:?}");
    }
}
