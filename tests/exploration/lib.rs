//! Models that are explored: every interleaving, or as many as a bound allows.
//!
//! A test shows that a model is right ([`assert_right`]), and that its properties can fail: each mistake that
//! is planted in it is caught ([`assert_caught`]).

#![allow(clippy::panic, reason = "a mistake that is not caught is a failed test")]

use std::fmt::Debug;
use std::hash::Hash;
use std::io::Write as _;
use std::time::Instant;

use stateright::{Checker, DiscoveryClassification, HasDiscoveries};
pub use stateright::{Model, Property};

#[cfg(test)]
mod tests;

/// A model that can be explored.
pub trait Explorable:
    Model<State: Clone + Debug + Hash + PartialEq + Send + Sync, Action: Clone + Debug + PartialEq>
    + Clone
    + Send
    + Sync
    + 'static
{
}

impl<M> Explorable for M where
    M: Model<State: Clone + Debug + Hash + PartialEq + Send + Sync, Action: Clone + Debug + PartialEq>
        + Clone
        + Send
        + Sync
        + 'static
{
}

/// How much of a model is explored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All states. It is a failure if there are more than fit into the memory.
    Whole,
    /// At most so many visits, those of repeated states included.
    Part(usize),
}

const WHOLE_LIMIT: usize = 100_000_000;
const USUAL_LIMIT: usize = 100_000;
const SOAK_LIMIT: usize = 50_000_000;

impl Extent {
    /// A part that every run has the time for, and a larger one in a soak.
    #[must_use]
    pub fn usual() -> Self {
        Self::Part(if is_soak() { SOAK_LIMIT } else { USUAL_LIMIT })
    }
}

/// Whether the long explorations are wanted.
#[must_use]
pub fn is_soak() -> bool {
    std::env::var_os("LOCKKEEPER_SOAK").is_some()
}

/// Checks that no property is broken, in more states than `more_than`: a model that soon ends shows little.
/// Returns the properties that hold in some state, if such an example is asked for.
pub fn assert_right<M: Explorable>(
    name: &str,
    model: &M,
    extent: Extent,
    more_than: usize,
) -> Vec<&'static str> {
    let explored = explore(name, model, extent);
    assert!(explored.broken.is_none(), "{name}: {:?}", explored.broken);
    assert!(explored.is_whole || extent != Extent::Whole, "{name}: the limit ended the exploration");
    assert!(explored.states > more_than, "{name}: hardly anything was explored");
    explored.examples
}

/// Checks that a planted mistake is found, and that the actions that show it break no property without it.
/// Returns the property that the mistake breaks.
pub fn assert_caught<M: Explorable>(name: &str, right: &M, wrong: &M) -> &'static str {
    let caught = explore(name, wrong, Extent::Part(SOAK_LIMIT));
    let (property, actions) = caught.broken.unwrap_or_else(|| panic!("{name} was not caught"));
    let _ = writeln!(std::io::stderr(), "  {property}: {actions:?}");
    let mut rules = right.properties();
    rules.retain(|property| property.expectation.discovery_is_failure());
    for mut state in right.init_states() {
        // As far as they are possible without the mistake.
        for action in &actions {
            let steps = right.next_steps(&state);
            let Some((_, next)) = steps.into_iter().find(|(possible, _)| possible == action) else { break };
            state = next;
            let is_right = rules.iter().all(|property| (property.condition)(right, &state));
            assert!(is_right, "{action:?} breaks a rule without {name}");
        }
    }
    property
}

struct Explored<A> {
    states: usize,
    is_whole: bool,
    /// The broken property, and the actions that lead to it.
    broken: Option<(&'static str, Vec<A>)>,
    examples: Vec<&'static str>,
}

/// Prints the states, the bound and the time past the capture of the test's output, since they belong to the
/// result.
#[expect(clippy::disallowed_methods, reason = "a stopwatch for people; nothing depends on it")]
fn explore<M: Explorable>(name: &str, model: &M, extent: Extent) -> Explored<M::Action> {
    let limit = match extent {
        Extent::Whole => WHOLE_LIMIT,
        Extent::Part(limit) => limit,
    };
    let begun = Instant::now();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let builder = model.clone().checker().threads(threads).target_state_count(limit);
    let checker = builder.finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let (states, depth) = (checker.unique_state_count(), checker.max_depth());
    let (mut examples, mut broken) = (Vec::new(), None);
    for (property, path) in checker.discoveries() {
        match checker.discovery_classification(property) {
            DiscoveryClassification::Example => examples.push(property),
            DiscoveryClassification::Counterexample => broken = Some((property, path.into_actions())),
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
