//! Which nodes of a queue hold and which wait, for an outside observer: pure.

use std::collections::HashSet;

use super::contender_info::Role;
use crate::queue::Rule;
use crate::znode::name::{Kind, NodeName};
use crate::znode::zxid::Zxid;

/// A child of the directory.
#[derive(Clone, Debug)]
pub(super) struct Child {
    pub(super) name: String,
    /// `None` once a read showed that the node does not exist.
    pub(super) czxid: Option<Zxid>,
    /// It is persistent and has or had children: a directory, whatever its name. Contenders wait for it, and
    /// it holds nothing.
    pub(super) is_directory: bool,
}

/// The verdict on a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Judged {
    /// The index of the child in the list.
    pub(super) child: usize,
    pub(super) role: Role,
    /// How many nodes ahead it waits for. `None` for a node that is not in a queue.
    pub(super) position: Option<u32>,
    /// What it contends for. `None` for a name without a sequence number.
    pub(super) kind: Option<Kind>,
}

/// Judges all children, and sorts them. Deleted nodes are left out.
pub(super) fn judge(children: &[Child], rules: &[(Kind, Rule)]) -> Vec<Judged> {
    let rule_of = |kind: Kind| rules.iter().find(|(of, _)| *of == kind).map(|(_, rule)| *rule);
    let mut queue: Vec<Contender> = Vec::new();
    let mut foreign: Vec<(Zxid, usize, Option<Kind>)> = Vec::new();
    let labels = rules.iter().flat_map(|(_, rule)| rule.labels());
    for (child, seen) in children.iter().enumerate() {
        let name = NodeName::parse_among(&seen.name, labels.clone());
        let rule = name.as_ref().and_then(|name| rule_of(name.kind()));
        match (name, rule, seen.czxid) {
            (Some(name), Some(rule), Some(czxid)) => {
                let is_directory = seen.is_directory;
                queue.push(Contender { child, name, rule, czxid, is_gone: false, is_directory });
            }
            // Its delete may have made another node appear that is not in the list, so no node behind it is
            // reported as holder.
            (Some(name), Some(rule), None) if rules.iter().any(|(_, rule)| rule.must_relist_after(&name)) => {
                let is_directory = false;
                queue.push(Contender { child, name, rule, czxid: Zxid::ZERO, is_gone: true, is_directory });
            }
            (name, _, Some(czxid)) => foreign.push((czxid, child, name.map(|name| name.kind()))),
            (_, _, None) => {}
        }
    }
    let sequence_only = rules.iter().any(|(_, rule)| rule.is_sequence_only());
    let mut numbers = HashSet::new();
    let is_numbered = queue
        .iter()
        .all(|of| of.name.has_ordered_sequence() && (sequence_only || numbers.insert(of.name.sequence())));
    let mut judged = match (is_numbered, sequence_only) {
        (true, _) => in_order(queue, |of| i64::from(of.name.sequence())),
        (false, false) => {
            queue.retain(|of| !of.is_gone);
            in_order(queue, |of| of.czxid)
        }
        (false, true) => {
            queue.retain(|of| !of.is_gone);
            queue.sort_by_key(|of| of.czxid);
            queue.iter().map(|of| of.judged(Role::Unknown, None)).collect()
        }
    };
    foreign.sort_unstable_by_key(|(czxid, child, _)| (*czxid, *child));
    let into_judged = |(_, child, kind)| Judged { child, role: Role::Foreign, position: None, kind };
    judged.extend(foreign.into_iter().map(into_judged));
    judged
}

struct Contender {
    child: usize,
    name: NodeName,
    rule: Rule,
    czxid: Zxid,
    is_gone: bool,
    is_directory: bool,
}

impl Contender {
    fn judged(&self, role: Role, position: Option<u32>) -> Judged {
        let (role, position) = if self.is_directory { (Role::Foreign, None) } else { (role, position) };
        Judged { child: self.child, role, position, kind: Some(self.name.kind()) }
    }
}

/// One pass over the queue, which counts the nodes ahead by kind.
fn in_order<K: Ord>(mut queue: Vec<Contender>, key: impl Fn(&Contender) -> K) -> Vec<Judged> {
    queue.sort_by_key(|of| (key(of), of.czxid));
    let mut judged = Vec::with_capacity(queue.len());
    let mut before: Vec<(Kind, u32)> = Vec::new();
    for equals in queue.chunk_by(|a, b| key(a) == key(b)) {
        for of in equals.iter().filter(|of| !of.is_gone) {
            let blocking = before.iter().filter(|(kind, _)| of.rule.blocks(*kind));
            let ahead = blocking.fold(0, |sum: u32, (_, count)| sum.saturating_add(*count));
            let role = if ahead == 0 { Role::Holder } else { Role::Waiter };
            judged.push(of.judged(role, Some(ahead)));
        }
        for of in equals {
            match before.iter_mut().find(|(kind, _)| *kind == of.name.kind()) {
                Some((_, count)) => *count = count.saturating_add(1),
                None => before.push((of.name.kind(), 1)),
            }
        }
    }
    judged
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use lockkeeper_lock::count_of;

    use super::*;
    use crate::queue::ListJudgement;

    const MUTEX: [(Kind, Rule); 1] = [(Kind::LOCK, Rule::MUTEX)];
    const RW: [(Kind, Rule); 2] = [(Kind::READ, Rule::READER), (Kind::WRITE, Rule::WRITER)];

    fn seen(names: &[&str]) -> Vec<Child> {
        (1..)
            .zip(names)
            .map(|(czxid, name)| Child {
                name: (*name).to_owned(),
                czxid: Some(Zxid::new(czxid)),
                is_directory: false,
            })
            .collect()
    }

    fn describe(children: &[Child], rules: &[(Kind, Rule)]) -> Vec<(usize, Role, Option<u32>)> {
        judge(children, rules).iter().map(|of| (of.child, of.role, of.position)).collect()
    }

    #[test]
    fn the_first_holds_and_foreign_nodes_come_last() {
        let queue = seen(&["readme", "b-lock-0000000009", "a__lock__0000000003", "x-__READ__0000000001"]);
        let expected = [
            (2, Role::Holder, Some(0)),
            (1, Role::Waiter, Some(1)),
            (0, Role::Foreign, None),
            (3, Role::Foreign, None),
        ];
        assert_eq!(describe(&queue, &MUTEX), expected);
    }

    #[test]
    fn readers_hold_together_and_a_writer_behind_its_own_number_too() {
        let queue = seen(&[
            "a-__WRIT__0000000001",
            "a-__READ__0000000001",
            "b-__READ__0000000002",
            "c-__WRIT__0000000003",
        ]);
        let expected = [
            (0, Role::Holder, Some(0)),
            (1, Role::Holder, Some(0)),
            (2, Role::Waiter, Some(1)),
            (3, Role::Waiter, Some(3)),
        ];
        assert_eq!(describe(&queue, &RW), expected);
    }

    #[test]
    fn where_numbers_end_creation_tells_or_nothing_does() {
        let locks = seen(&["a-lock-2147483647", "b-lock--2147483648"]);
        assert_eq!(describe(&locks, &MUTEX), [(0, Role::Holder, Some(0)), (1, Role::Waiter, Some(1))]);
        let equal = seen(&["a-lock-0000000005", "b-lock-0000000005"]);
        assert_eq!(describe(&equal, &MUTEX), [(0, Role::Holder, Some(0)), (1, Role::Waiter, Some(1))]);
        let rw = seen(&["a-__WRIT__2147483647", "b-__READ__2147483647"]);
        assert_eq!(describe(&rw, &RW), [(0, Role::Unknown, None), (1, Role::Unknown, None)]);
    }

    #[test]
    fn who_went_is_left_out_and_a_writer_that_went_may_have_left_a_reader() {
        let mut queue = seen(&["a-lock-0000000001", "b-lock-0000000002"]);
        queue[0].czxid = None;
        assert_eq!(describe(&queue, &MUTEX), [(1, Role::Holder, Some(0))]);
        let mut queue = seen(&["a-__WRIT__0000000001", "b-__WRIT__0000000002", "c-__READ__0000000003"]);
        queue[0].czxid = None;
        assert_eq!(describe(&queue, &RW), [(1, Role::Waiter, Some(1)), (2, Role::Waiter, Some(2))]);
    }

    #[test]
    fn a_directory_with_the_name_of_a_contender_blocks_and_holds_nothing() {
        let mut queue = seen(&["lock-0000000001", "a-lock-0000000002"]);
        queue[0].is_directory = true;
        assert_eq!(describe(&queue, &MUTEX), [(0, Role::Foreign, None), (1, Role::Waiter, Some(1))]);
    }

    proptest! {
        /// Each contender's own judgement gives the same answer.
        #[test]
        fn the_walk_agrees_with_each_contenders_own_rule(
            kinds in prop::collection::btree_map(0..40i32, prop::bool::ANY, 1..20), rw: bool,
        ) {
            let label = |write: bool| match (rw, write) {
                (false, _) => "lock-",
                (true, true) => "__WRIT__",
                (true, false) => "__READ__",
            };
            let names: Vec<String> = kinds
                .iter()
                .rev()
                .map(|(sequence, write)| format!("x-{}{sequence:010}", label(*write)))
                .collect();
            let rules = if rw { &RW[..] } else { &MUTEX[..] };
            let children = seen(&names.iter().map(String::as_str).collect::<Vec<_>>());
            let all = judge(&children, rules);
            prop_assert_eq!(all.len(), names.len());
            for judged in all {
                let me = &names[judged.child];
                let kind = NodeName::parse(me).unwrap().kind();
                let rule = rules.iter().find(|(of, _)| *of == kind).unwrap().1;
                let ahead = match rule.judge(&names, me, &[]) {
                    ListJudgement::Held => 0,
                    ListJudgement::WaitFor(lower) => count_of(lower.len()),
                    other => panic!("{other:?}"),
                };
                prop_assert_eq!(judged.position, Some(ahead));
            }
        }
    }
}
