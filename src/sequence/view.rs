//! What a waiter knows about who is in front: the set of lower blockers, which only shrinks.

use super::name::NodeName;
use super::rule::Rule;

/// The blockers of the last list that are not known to be gone, lowest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct View {
    lower: Vec<NodeName>,
    /// The connection on which the list was read.
    connection: Option<u64>,
    /// Whether one went whose going may have made another appear.
    look_again: bool,
    /// How many more are in front of these, who need not be known: they go first.
    hidden: usize,
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
    pub(super) fn new(lower: Vec<NodeName>, connection: Option<u64>) -> Self {
        Self { lower, connection, look_again: false, hidden: 0 }
    }

    /// So many more are in front of the lowest of these.
    pub(super) fn with_hidden(self, hidden: usize) -> Self {
        Self { hidden, ..self }
    }

    /// The blocker to watch.
    pub(super) fn nearest(&self) -> Option<&NodeName> {
        self.lower.last()
    }

    pub(super) fn ahead(&self) -> usize {
        self.hidden + self.lower.len()
    }

    /// A blocker is gone.
    ///
    /// The event alone grants only when it was the last one: others may have gone unseen, which one list tells more
    /// cheaply than a look at each. And only on the connection on which the list was read: events that are replayed
    /// after a reconnect come in no order, so that our own node may have gone before without our knowing.
    pub(super) fn gone(&mut self, name: &str, rule: &Rule, connection: Option<u64>) -> Next {
        self.look_again |= connection.is_none() || connection != self.connection;
        if let Some(at) = self.lower.iter().position(|node| node.as_str() == name) {
            let node = self.lower.remove(at);
            self.look_again |= rule.must_look_again_after(&node);
        }
        if self.lower.is_empty() && self.hidden == 0 && !self.look_again { Next::Held } else { Next::List }
    }
}

#[cfg(test)]
mod tests {
    use super::super::name::Kind;
    use super::*;

    fn view(names: &[&str]) -> View {
        View::new(names.iter().map(|name| NodeName::parse(name).unwrap()).collect(), Some(1))
    }

    #[test]
    fn the_last_blockers_going_grants_and_no_other() {
        let mut view = view(&["a-lock-0000000001", "b-lock-0000000002"]);
        assert_eq!(view.nearest().unwrap().as_str(), "b-lock-0000000002");
        assert_eq!(view.gone("b-lock-0000000002", &Rule::MUTEX, Some(1)), Next::List);
        assert_eq!(view.gone("x-lock-0000000009", &Rule::MUTEX, Some(1)), Next::List);
        assert_eq!(view.gone("a-lock-0000000001", &Rule::MUTEX, Some(1)), Next::Held);
    }

    #[test]
    fn an_event_on_another_connection_does_not_grant() {
        assert_eq!(view(&["a-lock-0000000001"]).gone("a-lock-0000000001", &Rule::MUTEX, Some(2)), Next::List);
        assert_eq!(view(&["a-lock-0000000001"]).gone("a-lock-0000000001", &Rule::MUTEX, None), Next::List);
    }

    #[test]
    fn a_writer_never_enters_on_the_going_of_a_writer() {
        let rule = Rule::blocked_by(&[Kind::Read, Kind::Write]).looking_again_after(&[Kind::Write]);
        let mut view = view(&["a-__WRIT__0000000001", "b-__READ__0000000002"]);
        assert_eq!(view.gone("a-__WRIT__0000000001", &rule, Some(1)), Next::List);
        assert_eq!(view.gone("b-__READ__0000000002", &rule, Some(1)), Next::List);
    }
}
