//! The plan of the faults, from a seed. Pure.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

use super::Fault;
use crate::history::Lane;

/// For each lane what strikes there, one after the other, without end.
#[derive(Debug, Default)]
pub(crate) struct Plan(pub(crate) Vec<Deck>);

/// A fault that is planned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Planned {
    pub(crate) fault: Fault,
    /// The target, among the possible ones.
    pub(crate) target: usize,
    pub(crate) lasting: Duration,
    /// The peace before it.
    pub(crate) peace: Duration,
}

impl Plan {
    pub(crate) fn deal(seed: u64, servers: usize, session: Duration) -> Self {
        let lanes = [Lane::Servers, Lane::Clients, Lane::Foreign].into_iter().enumerate();
        let deck = |(number, lane): (usize, Lane)| Deck {
            lane,
            kinds: Fault::all(servers).filter(|fault| fault.lane() == lane).collect(),
            rest: Vec::new(),
            session,
            rng: StdRng::seed_from_u64(seed.wrapping_mul(10).wrapping_add(number as u64)),
        };
        Self(lanes.map(deck).collect())
    }
}

/// The faults of one lane. Every kind occurs once, in any order, before one repeats.
#[derive(Debug)]
pub(crate) struct Deck {
    pub(crate) lane: Lane,
    pub(crate) kinds: Vec<Fault>,
    rest: Vec<Fault>,
    session: Duration,
    rng: StdRng,
}

impl Iterator for Deck {
    type Item = Planned;

    fn next(&mut self) -> Option<Planned> {
        if self.rest.is_empty() {
            self.rest.clone_from(&self.kinds);
            self.rest.shuffle(&mut self.rng);
        }
        let fault = self.rest.pop()?;
        Some(Planned {
            fault,
            target: self.rng.random_range(0..60),
            lasting: fault.lasting(self.session, &mut self.rng),
            peace: fault.peace(self.session, &mut self.rng),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const SESSION: Duration = Duration::from_secs(3);

    #[test]
    fn a_seed_is_the_same_plan_every_time() {
        let deal = |seed| -> Vec<Planned> {
            let Plan(decks) = Plan::deal(seed, 3, SESSION);
            decks.into_iter().flat_map(|deck| deck.take(50)).collect()
        };
        assert_eq!(deal(7), deal(7));
        assert_ne!(deal(7), deal(8));
    }

    #[test]
    fn every_kind_is_dealt_before_one_comes_again_and_none_that_cannot_strike() {
        let mut ever = BTreeSet::new();
        for servers in [1, 3] {
            let mut dealt = BTreeSet::new();
            let Plan(decks) = Plan::deal(1, servers, SESSION);
            for mut deck in decks {
                let kinds = deck.kinds.len();
                for _ in 0..2 {
                    let round: BTreeSet<Fault> = deck.by_ref().take(kinds).map(|it| it.fault).collect();
                    assert_eq!(round.len(), kinds);
                    dealt.extend(round);
                }
            }
            assert_eq!(dealt, Fault::all(servers).collect());
            ever.extend(dealt);
        }
        assert_eq!(ever.len(), 24);
    }
}
