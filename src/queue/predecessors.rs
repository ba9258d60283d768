//! The contenders ahead that a waiter knows. It keeps only the names that it watches: there may be
//! thousands.

use lockkeeper_lock::count_of;

use super::rule::Rule;
use crate::znode::name::NodeName;

/// The blockers of the last list: the nearest ones by name, the others as a count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Predecessors {
    predecessor: NodeName,
    /// The second nearest blocker.
    second_predecessor: Option<NodeName>,
    /// How many blockers there are.
    ahead: u32,
    /// The connection on which the list was read.
    connection: Option<u64>,
}

/// What to do after a blocker was deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnDeleted {
    /// No contender is ahead any more.
    Held,
    /// Only a new list can decide.
    List,
}

impl Predecessors {
    /// Behind these blockers, lowest first. Returns `None` if there are none.
    pub(super) fn new(mut lower: Vec<NodeName>, connection: Option<u64>) -> Option<Self> {
        let ahead = count_of(lower.len());
        let predecessor = lower.pop()?;
        Some(Self { predecessor, second_predecessor: lower.pop(), ahead, connection })
    }

    /// Behind this blocker, with `others` more contenders ahead of it that need no names: they release before
    /// it.
    pub(super) fn behind(predecessor: NodeName, others: u32, connection: Option<u64>) -> Self {
        Self { predecessor, second_predecessor: None, ahead: others.saturating_add(1), connection }
    }

    /// The blocker that releases last, if they release in order.
    pub(super) fn predecessor(&self) -> &NodeName {
        &self.predecessor
    }

    /// The second nearest blocker, if it is known.
    pub(super) fn second_predecessor(&self) -> Option<&NodeName> {
        self.second_predecessor.as_ref()
    }

    pub(super) fn ahead(&self) -> u32 {
        self.ahead
    }

    /// What to do when the nearest blocker was deleted.
    ///
    /// The event alone grants only if that blocker was the only one. Others may have been deleted unseen, and
    /// one list shows that at a lower cost than a read of each. Also, the event grants only on the connection
    /// that carried the list: after a reconnect, events are replayed in no order, so the own node may have
    /// been deleted earlier without notice.
    pub(super) fn without_predecessor(&self, rule: &Rule, connection: Option<u64>) -> OnDeleted {
        let is_same_connection = connection.is_some() && connection == self.connection;
        let is_decisive = is_same_connection && !rule.must_relist_after(&self.predecessor);
        if self.ahead == 1 && is_decisive { OnDeleted::Held } else { OnDeleted::List }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::znode::name::Kind;

    fn predecessors(names: &[&str]) -> Predecessors {
        Predecessors::new(names.iter().map(|name| NodeName::parse(name).unwrap()).collect(), Some(1)).unwrap()
    }

    #[test]
    fn deleting_the_only_blocker_grants_and_deleting_one_of_two_does_not() {
        let two = predecessors(&["a-lock-0000000001", "b-lock-0000000002"]);
        assert_eq!(two.predecessor().as_str(), "b-lock-0000000002");
        assert_eq!(two.second_predecessor().unwrap().as_str(), "a-lock-0000000001");
        assert_eq!(two.ahead(), 2);
        assert_eq!(two.without_predecessor(&Rule::MUTEX, Some(1)), OnDeleted::List);
        let one = predecessors(&["a-lock-0000000001"]);
        assert_eq!((one.second_predecessor(), one.ahead()), (None, 1));
        assert_eq!(one.without_predecessor(&Rule::MUTEX, Some(1)), OnDeleted::Held);
        let unseen = Predecessors::behind(one.predecessor().clone(), 1, Some(1));
        assert_eq!(unseen.without_predecessor(&Rule::MUTEX, Some(1)), OnDeleted::List);
    }

    #[test]
    fn an_event_on_another_connection_does_not_grant() {
        let one = predecessors(&["a-lock-0000000001"]);
        assert_eq!(one.without_predecessor(&Rule::MUTEX, Some(2)), OnDeleted::List);
        assert_eq!(one.without_predecessor(&Rule::MUTEX, None), OnDeleted::List);
    }

    #[test]
    fn a_contender_lists_after_a_deleted_writer_and_not_after_a_deleted_reader() {
        let rule = Rule::blocked_by(&[Kind::READ, Kind::WRITE]).relist_after(&[Kind::WRITE]);
        assert_eq!(
            predecessors(&["a-__WRIT__0000000001"]).without_predecessor(&rule, Some(1)),
            OnDeleted::List
        );
        assert_eq!(
            predecessors(&["a-__READ__0000000001"]).without_predecessor(&rule, Some(1)),
            OnDeleted::Held
        );
    }
}
