//! Explores the states of a model, and says how many there were.

use std::fmt::Debug;
use std::hash::Hash;
use std::io::Write as _;
use std::time::Instant;

use stateright::{Checker, HasDiscoveries, Model};

/// The result of an exploration.
pub(crate) struct Explored<A> {
    pub(crate) states: usize,
    /// The broken property, and the actions that lead to it.
    pub(crate) broken: Option<(&'static str, Vec<A>)>,
}

/// How many states one exploration visits at most, repeated ones included.
pub(crate) fn limit() -> usize {
    if std::env::var_os("LOCKKEEPER_SOAK").is_some() { SOAK_LIMIT } else { LIMIT }
}

const LIMIT: usize = 250_000;
pub(crate) const SOAK_LIMIT: usize = 50_000_000;

/// Explores a scenario: visits at most `limit` states, and counts repeated ones.
#[expect(clippy::disallowed_methods, reason = "a stopwatch for people; nothing depends on it")]
pub(crate) fn explore<M>(name: &str, scenario: &M, limit: usize) -> Explored<M::Action>
where
    M: Model + Clone + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync,
    M::Action: Clone + Debug + PartialEq + Send + Sync,
{
    let begun = Instant::now();
    let checker = scenario
        .clone()
        .checker()
        .threads(2)
        .target_state_count(limit)
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_bfs()
        .join();
    let (states, depth) = (checker.unique_state_count(), checker.max_depth());
    let is_whole = checker.state_count() < limit;
    let broken = checker.discoveries().into_iter().next();
    let broken = broken.map(|(property, path)| (property, path.into_actions()));
    let bound = match &broken {
        Some((property, _)) => property,
        None if is_whole => "all of them",
        None => "bounded",
    };
    // Written past the capture of the test's output, since the bound belongs to the result.
    let _ = writeln!(
        std::io::stderr(),
        "{name}: {states} states, depth {depth}, {bound}, {:.1} s",
        begun.elapsed().as_secs_f64(),
    );
    Explored { states, broken }
}

/// Checks that an exploration finds a planted mistake, and nothing without it.
pub(crate) fn assert_caught<M>(mistake: &str, right: &M, wrong: &M)
where
    M: Model + Clone + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync,
    M::Action: Clone + Debug + PartialEq + Send + Sync,
{
    let explored = explore(&format!("without {mistake}"), right, limit());
    assert!(explored.broken.is_none(), "{:?}", explored.broken);
    let caught = explore(mistake, wrong, SOAK_LIMIT);
    let (property, actions) = caught.broken.unwrap_or_else(|| panic!("{mistake} was not caught"));
    let _ = writeln!(std::io::stderr(), "  {property}: {actions:?}");
}
