//! Who may enter a barrier, and who has left it: pure.
//!
//! A node `ready` opens the barrier for the members that were created before its last write: all of them
//! existed at that instant, because a member's node is not created again. Members that were created later
//! wait for the next round.

use std::collections::BTreeMap;

use lockkeeper_lock::count_of;

use crate::znode::zxid::Zxid;

/// The name of the node that opens the barrier.
pub(super) const READY: &str = "ready";

/// The node that opened the barrier last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Ready {
    /// Its last write: the opening of its round.
    pub(super) zxid: Zxid,
    pub(super) version: i32,
}

/// What a member that wants to enter does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Enter {
    /// The barrier was opened for it.
    Inside(Ready),
    /// Enough members wait: opens the barrier, on condition that all of these still exist.
    Open { members: Vec<String>, replaces: Option<i32> },
    /// Waits for a change.
    Wait { missing: u32 },
    /// Enough nodes are listed, or there is a node from an earlier round: asks when the members were created,
    /// and which of the nodes are members.
    AskAges,
    /// Its node does not exist any more.
    Gone,
}

/// Decides for the member `own`, which was created at `czxid`, whether a barrier of `count` members lets it
/// in.
///
/// `listed` was read before `ready`, or with it. `members` are the creation zxids of those that existed when
/// they were asked for, and belong to a session: a persistent node is no member.
pub(super) fn enter(
    count: u32,
    own: &str,
    czxid: Zxid,
    listed: &[String],
    ready: Option<Ready>,
    members: Option<&BTreeMap<String, Zxid>>,
) -> Enter {
    if let Some(ready) = ready.filter(|ready| czxid < ready.zxid) {
        return Enter::Inside(ready);
    }
    if !listed.iter().any(|name| name == own) {
        return Enter::Gone;
    }
    let missing = |here: usize| count.saturating_sub(count_of(here));
    if ready.is_none() && missing(listed.len()) > 0 {
        return Enter::Wait { missing: missing(listed.len()) };
    }
    let Some(members) = members else { return Enter::AskAges };
    if ready.is_some_and(|ready| members.values().any(|age| *age < ready.zxid)) {
        // The earlier round is not over.
        return Enter::Wait { missing: 0 };
    }
    if missing(members.len()) > 0 {
        return Enter::Wait { missing: missing(members.len()) };
    }
    let others = listed.iter().filter(|name| *name != own && members.contains_key(*name));
    let others = others.zip(1..count).map(|(name, _)| name.as_str());
    let members = std::iter::once(own).chain(others).map(str::to_owned).collect();
    Enter::Open { members, replaces: ready.map(|ready| ready.version) }
}

/// Whether a member that was created at `czxid` is in the round that `ready` opened.
pub(super) fn is_in_round(czxid: Zxid, ready: Ready) -> bool {
    czxid < ready.zxid
}

/// How a member of a round deletes its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Leave {
    /// On condition that this member of its round still exists: so the last one knows that it is the last.
    Before(String),
    /// As the last one of its round, together with the node that opened the round, if that exists.
    Last { closes: Option<i32> },
}

/// Decides how a member of the round of `ready` leaves. `other` is another member of the round, if there is
/// one;
/// `now` is the node that opens the barrier. While the own node exists, no later round begins, so the node is
/// that of the own round or of a client that does not keep these rules.
pub(super) fn leave(ready: Ready, other: Option<&str>, now: Option<Ready>) -> Leave {
    match other {
        Some(other) => Leave::Before(other.to_owned()),
        None => Leave::Last { closes: now.filter(|now| *now == ready).map(|now| now.version) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn ages(of: &[(&str, i64)]) -> BTreeMap<String, Zxid> {
        of.iter().map(|(name, age)| ((*name).to_owned(), Zxid::new(*age))).collect()
    }

    #[test]
    fn a_member_enters_if_the_barrier_was_opened_after_its_node_was_created() {
        let ready = Ready { zxid: Zxid::new(10), version: 0 };
        let decide = |czxid, of: &[&str]| enter(2, "a", Zxid::new(czxid), &members(of), Some(ready), None);
        assert_eq!(decide(9, &["a", "b"]), Enter::Inside(ready));
        assert_eq!(decide(9, &["a"]), Enter::Inside(ready), "although the others have left");
        assert_eq!(decide(11, &["a", "b"]), Enter::AskAges, "the node is from an earlier round");
        assert_eq!(decide(11, &["b"]), Enter::Gone);
    }

    #[test]
    fn the_barrier_is_opened_by_a_member_that_sees_enough_of_them_and_names_them() {
        let decide = |of: &[&str]| enter(3, "a", Zxid::new(5), &members(of), None, None);
        assert_eq!(decide(&["b", "a"]), Enter::Wait { missing: 1 });
        assert_eq!(decide(&["d", "c", "a", "b"]), Enter::AskAges);
        assert_eq!(decide(&["d", "c", "b"]), Enter::Gone);
        let all = members(&["d", "c", "a", "b"]);
        let decide = |of: &[(&str, i64)]| enter(3, "a", Zxid::new(5), &all, None, Some(&ages(of)));
        let open = Enter::Open { members: members(&["a", "d", "c"]), replaces: None };
        assert_eq!(decide(&[("a", 5), ("b", 6), ("c", 7), ("d", 8)]), open);
    }

    #[test]
    fn a_listed_node_that_is_no_member_neither_counts_nor_is_named() {
        let all = members(&["copy", "b", "a"]);
        let decide = |count, of: &[(&str, i64)]| enter(count, "a", Zxid::new(5), &all, None, Some(&ages(of)));
        assert_eq!(decide(3, &[("a", 5), ("b", 6)]), Enter::Wait { missing: 1 });
        let open = Enter::Open { members: members(&["a", "b"]), replaces: None };
        assert_eq!(decide(2, &[("a", 5), ("b", 6)]), open);
        // A copied node that is older than the last opening does not keep that round open.
        let ready = Some(Ready { zxid: Zxid::new(3), version: 4 });
        let open = Enter::Open { members: members(&["a", "b"]), replaces: Some(4) };
        assert_eq!(enter(2, "a", Zxid::new(5), &all, ready, Some(&ages(&[("a", 5), ("b", 6)]))), open);
    }

    #[test]
    fn a_stale_node_lets_nobody_in_and_is_replaced_when_its_round_is_over() {
        let ready = Some(Ready { zxid: Zxid::new(10), version: 3 });
        let all = members(&["a", "b"]);
        let decide = |of: &[(&str, i64)]| enter(2, "a", Zxid::new(11), &all, ready, Some(&ages(of)));
        assert_eq!(decide(&[("a", 11), ("b", 9)]), Enter::Wait { missing: 0 });
        let open = Enter::Open { members: members(&["a", "b"]), replaces: Some(3) };
        assert_eq!(decide(&[("a", 11), ("b", 12)]), open);
    }

    #[test]
    fn a_member_waits_for_the_end_of_the_round_before_also_where_members_are_missing() {
        let ready = Some(Ready { zxid: Zxid::new(10), version: 0 });
        let all = members(&["a", "b"]);
        let decide = |of: Option<&BTreeMap<String, Zxid>>| enter(3, "a", Zxid::new(11), &all, ready, of);
        assert_eq!(decide(None), Enter::AskAges);
        assert_eq!(decide(Some(&ages(&[("a", 11), ("b", 9)]))), Enter::Wait { missing: 0 });
        assert_eq!(decide(Some(&ages(&[("a", 11), ("b", 12)]))), Enter::Wait { missing: 1 });
    }

    #[test]
    fn the_last_member_of_a_round_deletes_the_node_of_its_round_and_no_other() {
        let ready = |zxid, version| Ready { zxid: Zxid::new(zxid), version };
        let own = ready(10, 3);
        assert_eq!(leave(own, None, Some(own)), Leave::Last { closes: Some(3) });
        // Another client has written it, or has deleted it and created it again.
        for now in [Some(ready(12, 4)), Some(ready(12, 3)), None] {
            assert_eq!(leave(own, None, now), Leave::Last { closes: None }, "{now:?}");
        }
        assert_eq!(leave(own, Some("b"), Some(own)), Leave::Before("b".to_owned()));
    }
}
