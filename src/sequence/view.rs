//! What a waiter knows about who is in front. It keeps no names that it does not watch: there may be thousands.

use super::name::NodeName;
use super::rule::Rule;

/// The blockers of the last list: the nearest ones by name, the others as a count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct View {
    nearest: NodeName,
    /// The one before the nearest.
    second: Option<NodeName>,
    /// How many there are.
    ahead: usize,
    /// The connection on which the list was read.
    connection: Option<u64>,
}

/// What to do after a blocker went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Nothing is in front any more.
    Held,
    /// Only a new list tells.
    List,
}

impl View {
    /// Behind these, lowest first; `None` for nobody.
    pub(super) fn new(mut lower: Vec<NodeName>, connection: Option<u64>) -> Option<Self> {
        let ahead = lower.len();
        let nearest = lower.pop()?;
        Some(Self { nearest, second: lower.pop(), ahead, connection })
    }

    /// Behind this one, and so many others in front of it who need not be known: they go first.
    pub(super) fn behind(nearest: NodeName, others: usize, connection: Option<u64>) -> Self {
        Self { nearest, second: None, ahead: others + 1, connection }
    }

    /// The blocker that goes last, if they go in order.
    pub(super) fn nearest(&self) -> &NodeName {
        &self.nearest
    }

    /// The blocker before the nearest, if it is known.
    pub(super) fn second(&self) -> Option<&NodeName> {
        self.second.as_ref()
    }

    pub(super) fn ahead(&self) -> usize {
        self.ahead
    }

    /// What to do when the nearest blocker is gone.
    ///
    /// The event alone grants only when it was the only one: others may have gone unseen, which one list tells more
    /// cheaply than a look at each. And only on the connection on which the list was read: events that are replayed
    /// after a reconnect come in no order, so that our own node may have gone before without our knowing.
    pub(super) fn without_nearest(&self, rule: &Rule, connection: Option<u64>) -> Next {
        let is_same_connection = connection.is_some() && connection == self.connection;
        let tells = is_same_connection && !rule.must_look_again_after(&self.nearest);
        if self.ahead == 1 && tells { Next::Held } else { Next::List }
    }
}

#[cfg(test)]
mod tests {
    use super::super::name::Kind;
    use super::*;

    fn view(names: &[&str]) -> View {
        View::new(names.iter().map(|name| NodeName::parse(name).unwrap()).collect(), Some(1)).unwrap()
    }

    #[test]
    fn the_only_blockers_going_grants_and_no_other() {
        let two = view(&["a-lock-0000000001", "b-lock-0000000002"]);
        assert_eq!(two.nearest().as_str(), "b-lock-0000000002");
        assert_eq!(two.second().unwrap().as_str(), "a-lock-0000000001");
        assert_eq!(two.without_nearest(&Rule::MUTEX, Some(1)), Next::List);
        let one = view(&["a-lock-0000000001"]);
        assert_eq!((one.second(), one.ahead()), (None, 1));
        assert_eq!(one.without_nearest(&Rule::MUTEX, Some(1)), Next::Held);
        let unseen = View::behind(one.nearest().clone(), 1, Some(1));
        assert_eq!(unseen.without_nearest(&Rule::MUTEX, Some(1)), Next::List);
    }

    #[test]
    fn an_event_on_another_connection_does_not_grant() {
        let one = view(&["a-lock-0000000001"]);
        assert_eq!(one.without_nearest(&Rule::MUTEX, Some(2)), Next::List);
        assert_eq!(one.without_nearest(&Rule::MUTEX, None), Next::List);
    }

    #[test]
    fn a_writer_never_enters_on_the_going_of_a_writer() {
        let rule = Rule::blocked_by(&[Kind::Read, Kind::Write]).looking_again_after(&[Kind::Write]);
        assert_eq!(view(&["a-__WRIT__0000000001"]).without_nearest(&rule, Some(1)), Next::List);
        assert_eq!(view(&["a-__READ__0000000001"]).without_nearest(&rule, Some(1)), Next::Held);
    }
}
