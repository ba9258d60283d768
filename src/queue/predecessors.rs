//! What a waiter knows about who is in front. It keeps no names that it does not watch: there may be thousands.

use super::rule::Rule;
use crate::znode::name::NodeName;

/// The blockers of the last list: the nearest ones by name, the others as a count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Predecessors {
    predecessor: NodeName,
    /// The one before the nearest.
    second_predecessor: Option<NodeName>,
    /// How many there are.
    ahead: usize,
    /// The connection on which the list was read.
    connection: Option<u64>,
}

/// What to do after a blocker went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnDeleted {
    /// Nothing is in front any more.
    Held,
    /// Only a new list tells.
    List,
}

impl Predecessors {
    /// Behind these, lowest first; `None` for nobody.
    pub(super) fn new(mut lower: Vec<NodeName>, connection: Option<u64>) -> Option<Self> {
        let ahead = lower.len();
        let predecessor = lower.pop()?;
        Some(Self { predecessor, second_predecessor: lower.pop(), ahead, connection })
    }

    /// Behind this one, and so many others in front of it who need not be known: they go first.
    pub(super) fn behind(predecessor: NodeName, others: usize, connection: Option<u64>) -> Self {
        Self { predecessor, second_predecessor: None, ahead: others + 1, connection }
    }

    /// The blocker that goes last, if they go in order.
    pub(super) fn predecessor(&self) -> &NodeName {
        &self.predecessor
    }

    /// The blocker before the nearest, if it is known.
    pub(super) fn second_predecessor(&self) -> Option<&NodeName> {
        self.second_predecessor.as_ref()
    }

    pub(super) fn ahead(&self) -> usize {
        self.ahead
    }

    /// What to do when the nearest blocker is gone.
    ///
    /// The event alone grants only when it was the only one: others may have gone unseen, which one list tells more
    /// cheaply than a look at each. And only on the connection on which the list was read: events that are replayed
    /// after a reconnect come in no order, so that our own node may have gone before without our knowing.
    pub(super) fn without_predecessor(&self, rule: &Rule, connection: Option<u64>) -> OnDeleted {
        let is_same_connection = connection.is_some() && connection == self.connection;
        let tells = is_same_connection && !rule.must_relist_after(&self.predecessor);
        if self.ahead == 1 && tells { OnDeleted::Held } else { OnDeleted::List }
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
    fn the_only_blockers_going_grants_and_no_other() {
        let two = predecessors(&["a-lock-0000000001", "b-lock-0000000002"]);
        assert_eq!(two.predecessor().as_str(), "b-lock-0000000002");
        assert_eq!(two.second_predecessor().unwrap().as_str(), "a-lock-0000000001");
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
    fn a_writer_never_enters_on_the_going_of_a_writer() {
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
