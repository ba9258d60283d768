//! The requests and events of a scenario: recorded, not listed by hand.

use std::collections::HashMap;
use std::fmt::{self, Display, Formatter};

use lockkeeper_testserver::fault::{Passed, Subject};
use lockkeeper_testserver::{Op, When};

/// The n-th request or event of a kind, with these paths, from or to the client that faults strike.
///
/// Counted among its own kind and paths only, so that periodic requests do not shift the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InjectionPoint {
    pub(crate) what: Subject,
    /// Patterns: the names of contenders differ each time.
    paths: Vec<String>,
    nth: u64,
}

impl InjectionPoint {
    /// A rule that matches it, for this session.
    pub(crate) fn when(&self, session: i64) -> When {
        let when = match self.what {
            Subject::Request(op) => When::op(op),
            Subject::Event(kind) => When::event_kind(kind),
        };
        when.paths(&self.paths).session(session).nth(self.nth)
    }

    pub(crate) fn is(&self, op: Op) -> bool {
        self.what == Subject::Request(op)
    }

    /// Whether it is periodic: a ping, or a confirmation of the lease, which is a transaction of one check.
    pub(crate) fn is_by_clock(&self) -> bool {
        self.is(Op::Ping) || (self.is(Op::Multi) && self.paths.len() == 1)
    }

    pub(crate) fn has_path(&self, path: &str) -> bool {
        self.paths.iter().any(|pattern| pattern == path)
    }
}

impl Display for InjectionPoint {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self.what {
            Subject::Request(op) => write!(formatter, "{op:?}")?,
            Subject::Event(kind) => write!(formatter, "event {kind:?}")?,
        }
        write!(formatter, "({})#{}", self.paths.join(" "), self.nth)
    }
}

/// The messages of one session as injection points.
pub(crate) fn injection_points(passed: Vec<Passed>, session: i64) -> Vec<InjectionPoint> {
    let mut counts = HashMap::<_, u64>::new();
    let of_session = passed.into_iter().filter(|passed| passed.session == session);
    let each = of_session.map(|passed| {
        let paths: Vec<String> = passed.paths.iter().map(|path| pattern(path)).collect();
        let nth = counts.entry((format!("{:?}", passed.subject), paths.clone())).or_default();
        *nth += 1;
        InjectionPoint { what: passed.subject, paths, nth: *nth }
    });
    each.collect()
}

/// The same path for every run: random names become patterns.
fn pattern(path: &str) -> String {
    let names = path.split('/').map(|name| if name.starts_with("_c_") { "*" } else { name });
    names.collect::<Vec<_>>().join("/")
}

#[test]
fn an_injection_point_is_counted_among_its_own_paths() {
    let passed = |path: &str| Passed {
        subject: Subject::Request(Op::GetData),
        paths: vec![path.to_owned()],
        session: 7,
        server: 0,
    };
    let passed = vec![passed("/lock/_c_1"), passed("/lock"), passed("/lock/_c_2")];
    let names: Vec<String> = injection_points(passed, 7).iter().map(InjectionPoint::to_string).collect();
    assert_eq!(names, ["GetData(/lock/*)#1", "GetData(/lock)#1", "GetData(/lock/*)#2"]);
}
