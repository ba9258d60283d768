use glob::{MatchOptions, Pattern};

use super::{Occasion, Subject};
use crate::protocol::Op;
use crate::tree::EventKind;

/// Chooses requests or events: by kind, path, session, server, and by count.
///
/// Without [`nth`](When::nth), [`times`](When::times) or [`always`](When::always) it chooses the first match
/// only.
#[derive(Debug, Clone)]
pub struct When {
    subject: Chosen,
    path: Option<Pattern>,
    paths: Option<Vec<Pattern>>,
    session: Option<i64>,
    server: Option<usize>,
    first: u64,
    last: u64,
}

#[derive(Debug, Clone)]
enum Chosen {
    Requests(Vec<Op>),
    AnyRequest,
    Events(Vec<EventKind>),
    AnyEvent,
}

impl When {
    fn new(subject: Chosen) -> Self {
        Self { subject, path: None, paths: None, session: None, server: None, first: 1, last: 1 }
    }

    /// Any request but connect requests; pings are requests too.
    pub fn request() -> Self {
        Self::new(Chosen::AnyRequest)
    }

    /// Requests of that kind.
    pub fn op(op: Op) -> Self {
        Self::new(Chosen::Requests(vec![op]))
    }

    /// Requests of these kinds.
    pub fn ops(ops: impl IntoIterator<Item = Op>) -> Self {
        Self::new(Chosen::Requests(ops.into_iter().collect()))
    }

    /// Any of the four creates, but not a transaction that creates.
    pub fn create() -> Self {
        Self::ops([Op::Create, Op::Create2, Op::CreateContainer, Op::CreateTtl])
    }

    /// Connect requests.
    pub fn connect() -> Self {
        Self::op(Op::Connect)
    }

    /// Any watch event.
    pub fn event() -> Self {
        Self::new(Chosen::AnyEvent)
    }

    /// Watch events of that kind.
    pub fn event_kind(kind: EventKind) -> Self {
        Self::new(Chosen::Events(vec![kind]))
    }

    /// Only with a path that matches. `*` matches anything within a name, `**` between slashes for any names.
    ///
    /// Of a sequential create the path is the one asked for, without the number. A transaction matches if any
    /// of its paths does. A text that is no well-formed pattern matches itself.
    #[must_use]
    pub fn path(mut self, pattern: &str) -> Self {
        self.path = pattern_of(pattern);
        self
    }

    /// Only with exactly these paths, in this order: a transaction with these parts, a request of one path,
    /// or of none.
    #[must_use]
    pub fn paths<S: AsRef<str>>(mut self, patterns: &[S]) -> Self {
        self.paths = Some(patterns.iter().filter_map(|pattern| pattern_of(pattern.as_ref())).collect());
        self
    }

    /// Only of that session. A connect request belongs to the session it asks for.
    #[must_use]
    pub fn session(mut self, session: i64) -> Self {
        self.session = Some(session);
        self
    }

    /// Only through that server, counted from 0.
    #[must_use]
    pub fn server(mut self, server: usize) -> Self {
        self.server = Some(server);
        self
    }

    /// Only the n-th match, counted from 1.
    #[must_use]
    pub fn nth(mut self, n: u64) -> Self {
        (self.first, self.last) = (n, n);
        self
    }

    /// Only the first n matches.
    #[must_use]
    pub fn times(mut self, n: u64) -> Self {
        (self.first, self.last) = (1, n);
        self
    }

    /// Every match from the n-th on, counted from 1.
    #[must_use]
    pub fn from_nth(mut self, n: u64) -> Self {
        (self.first, self.last) = (n, u64::MAX);
        self
    }

    /// Every match.
    #[must_use]
    pub fn always(mut self) -> Self {
        (self.first, self.last) = (1, u64::MAX);
        self
    }

    /// Whether it matches, counts aside.
    pub fn matches(&self, occasion: &Occasion<'_>) -> bool {
        let subject = match (&self.subject, occasion.subject) {
            (Chosen::AnyRequest, Subject::Request(op)) => op != Op::Connect,
            (Chosen::Requests(ops), Subject::Request(op)) => ops.contains(&op),
            (Chosen::AnyEvent, Subject::Event(_)) => true,
            (Chosen::Events(kinds), Subject::Event(kind)) => kinds.contains(&kind),
            _ => false,
        };
        let options = MatchOptions { require_literal_separator: true, ..MatchOptions::new() };
        let path = |pattern: &Pattern| occasion.paths.iter().any(|path| pattern.matches_with(path, options));
        let paths = |patterns: &Vec<Pattern>| {
            let pairs = patterns.iter().zip(&occasion.paths);
            patterns.len() == occasion.paths.len()
                && pairs.into_iter().all(|(pattern, path)| pattern.matches_with(path, options))
        };
        subject
            && self.path.as_ref().is_none_or(path)
            && self.paths.as_ref().is_none_or(paths)
            && self.session.is_none_or(|session| session == occasion.session)
            && self.server.is_none_or(|server| server == occasion.server)
    }

    pub(super) fn counts(&self, nth: u64) -> bool {
        (self.first..=self.last).contains(&nth)
    }
}

/// A text that is no well-formed pattern matches itself.
fn pattern_of(text: &str) -> Option<Pattern> {
    Pattern::new(text).or_else(|_| Pattern::new(&Pattern::escape(text))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn create(path: &str) -> Occasion<'_> {
        Occasion { subject: Subject::Request(Op::Create2), paths: vec![path], session: 7, server: 0 }
    }

    #[test]
    fn a_star_stays_within_a_name_and_two_cross_them() {
        assert!(When::create().path("/locks/*").matches(&create("/locks/_c_x-lock-")));
        assert!(!When::create().path("/locks/*").matches(&create("/locks/a/b")));
        assert!(When::create().path("/locks/**").matches(&create("/locks/a/b")));
        assert!(!When::create().path("/locks/**").matches(&create("/lock")));
    }

    #[test]
    fn a_transaction_is_chosen_by_any_of_its_paths_or_by_all() {
        let paths = vec!["/locks/a-1", "/done"];
        let multi = Occasion { subject: Subject::Request(Op::Multi), paths, session: 7, server: 0 };
        assert!(When::op(Op::Multi).path("/locks/*").matches(&multi));
        assert!(When::op(Op::Multi).paths(&["/locks/*", "/done"]).matches(&multi));
        assert!(!When::op(Op::Multi).paths(&["/locks/*"]).matches(&multi));
        assert!(!When::op(Op::Multi).paths(&["/done", "/locks/*"]).matches(&multi));
        assert!(!When::op(Op::Multi).paths::<&str>(&[]).matches(&multi));
    }

    #[test]
    fn kind_session_and_server_all_have_to_fit() {
        assert!(!When::op(Op::Delete).matches(&create("/a")));
        assert!(!When::event().matches(&create("/a")));
        assert!(When::request().session(7).server(0).matches(&create("/a")));
        assert!(!When::request().session(8).matches(&create("/a")));
        assert!(!When::request().server(1).matches(&create("/a")));
    }
}
