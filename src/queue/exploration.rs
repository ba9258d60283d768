//! A model that is explored: every interleaving, or as many as a bound allows.

use std::fmt::Debug;
use std::hash::Hash;
use std::io::Write;
use std::time::Instant;

use stateright::{Checker, DiscoveryClassification, HasDiscoveries, Model};

/// The result of an exploration.
pub(super) struct Explored<A> {
    pub(super) states: usize,
    /// Every state was visited.
    pub(super) is_whole: bool,
    /// The broken property, and the actions that lead to it.
    pub(super) broken: Option<(&'static str, Vec<A>)>,
    /// The properties that hold in some state, if such an example is asked for.
    pub(super) examples: Vec<&'static str>,
}

/// Visits at most `limit` states, and counts repeated ones. Prints the states, the bound and the time past
/// the capture of the test's output, since they belong to the result.
#[expect(clippy::disallowed_methods, reason = "a stopwatch for people; nothing depends on it")]
pub(super) fn explore<M>(name: &str, model: &M, limit: usize) -> Explored<M::Action>
where
    M: Model<State: Clone + PartialEq + Hash + Debug + Send + Sync, Action: Clone + PartialEq + Debug>
        + Clone
        + Send
        + Sync
        + 'static,
{
    let begun = Instant::now();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let builder = model.clone().checker().threads(threads).target_state_count(limit);
    let checker = builder.finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let (states, depth) = (checker.unique_state_count(), checker.max_depth());
    let is_example =
        |name| matches!(checker.discovery_classification(name), DiscoveryClassification::Example);
    let (mut examples, mut broken) = (Vec::new(), None);
    for (property, path) in checker.discoveries() {
        match is_example(property) {
            true => examples.push(property),
            false => broken = Some((property, path.into_actions())),
        }
    }
    let is_whole = broken.is_none() && checker.state_count() < limit;
    let bound = match &broken {
        Some((property, _)) => property,
        None if is_whole => "all of them",
        None => "bounded",
    };
    let seconds = begun.elapsed().as_secs_f64();
    let _ = writeln!(std::io::stderr(), "{name}: {states} states, depth {depth}, {bound}, {seconds:.1} s");
    Explored { states, is_whole, broken, examples }
}

/// Whether the long explorations are wanted.
pub(super) fn is_soak() -> bool {
    std::env::var_os("LOCKKEEPER_SOAK").is_some()
}
