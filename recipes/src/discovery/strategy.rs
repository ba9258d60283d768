//! Which candidate is next: pure but for the random numbers.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

/// How a [`Balancer`](crate::discovery::Balancer) chooses an instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Strategy {
    /// One instance after the other, in the order of their nodes. The first one is random, so that many
    /// clients do not begin with the same.
    #[default]
    RoundRobin,
    /// Each time any of them.
    Random,
    /// The same instance until it is gone, drains or fails; then any other.
    Sticky,
}

/// The state of a strategy.
#[derive(Debug)]
pub(super) struct Chooser {
    strategy: Strategy,
    calls: AtomicUsize,
    random: RandomState,
    /// The node of the instance that stays chosen.
    sticky: Mutex<Option<String>>,
}

impl Chooser {
    pub(super) fn new(strategy: Strategy) -> Self {
        let random = RandomState::new();
        let first = usize::try_from(random.hash_one(strategy as u8)).unwrap_or_default();
        Self { strategy, calls: AtomicUsize::new(first), random, sticky: Mutex::default() }
    }

    /// The index of the chosen one. `candidates` are sorted by `node`.
    pub(super) fn choose<C>(&self, candidates: &[C], node: impl Fn(&C) -> &str) -> Option<usize> {
        if candidates.is_empty() {
            return None;
        }
        match self.strategy {
            Strategy::RoundRobin => self.next_call().checked_rem(candidates.len()),
            Strategy::Random => self.any(candidates.len()),
            Strategy::Sticky => {
                let mut sticky = self.sticky.lock();
                let find = |wanted: &String| {
                    candidates.binary_search_by(|candidate| node(candidate).cmp(wanted)).ok()
                };
                if let Some(index) = sticky.as_ref().and_then(find) {
                    return Some(index);
                }
                let index = self.any(candidates.len())?;
                *sticky = candidates.get(index).map(|candidate| node(candidate).to_owned());
                Some(index)
            }
        }
    }

    /// It wraps around after 2⁶⁴ calls.
    fn next_call(&self) -> usize {
        self.calls.fetch_add(1, Ordering::Relaxed)
    }

    /// A keyed hash of a counter is a random number.
    fn any(&self, count: usize) -> Option<usize> {
        let random = u128::from(self.random.hash_one(self.next_call()));
        usize::try_from((random * count as u128) >> 64).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn choose<'a>(chooser: &Chooser, nodes: &[&'a str]) -> Option<&'a str> {
        chooser.choose(nodes, |node| node).map(|index| nodes[index])
    }

    #[test]
    fn nothing_is_chosen_of_nothing() {
        for strategy in [Strategy::RoundRobin, Strategy::Random, Strategy::Sticky] {
            assert_eq!(choose(&Chooser::new(strategy), &[]), None);
        }
    }

    #[test]
    fn round_robin_chooses_each_in_turn_and_wraps_around() {
        let chooser = Chooser::new(Strategy::RoundRobin);
        // Near the end of the numbers.
        chooser.calls.store(usize::MAX - 4, Ordering::Relaxed);
        let chosen: Vec<_> = (0..8).filter_map(|_| choose(&chooser, &["a", "b", "c", "d"])).collect();
        assert_eq!(chosen.len(), 8);
        for pair in chosen.windows(4) {
            let mut pair = pair.to_vec();
            pair.sort_unstable();
            assert_eq!(pair, ["a", "b", "c", "d"]);
        }
    }

    #[test]
    fn random_chooses_each_about_as_often() {
        let chooser = Chooser::new(Strategy::Random);
        let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
        for _ in 0..40_000 {
            *counts.entry(choose(&chooser, &["a", "b", "c", "d"]).unwrap()).or_default() += 1;
        }
        assert_eq!(counts.len(), 4);
        // Ten standard deviations.
        assert!(counts.values().all(|count| (9_130..10_870).contains(count)), "{counts:?}");
    }

    #[test]
    fn sticky_stays_until_its_instance_is_gone() {
        let chooser = Chooser::new(Strategy::Sticky);
        let nodes = ["a", "b", "c"];
        let first = choose(&chooser, &nodes).unwrap();
        assert!((0..100).all(|_| choose(&chooser, &nodes) == Some(first)));
        let rest: Vec<&str> = nodes.into_iter().filter(|node| *node != first).collect();
        let second = choose(&chooser, &rest).unwrap();
        assert_ne!(second, first);
        // It stays there also when the first one is back.
        assert!((0..100).all(|_| choose(&chooser, &nodes) == Some(second)));
    }
}
