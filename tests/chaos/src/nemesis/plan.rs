//! What is to strike, from a seed. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

use super::Fault;
use crate::history::Lane;

/// For each lane what strikes there, one after the other.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan(pub(crate) BTreeMap<Lane, Vec<Planned>>);

/// A fault that is planned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Planned {
    pub(crate) fault: Fault,
    /// Whom it strikes, out of those whom it can.
    pub(crate) target: usize,
    pub(crate) lasting: Duration,
    /// The peace before it.
    pub(crate) peace: Duration,
}

impl Plan {
    /// Nothing strikes.
    pub(crate) fn none() -> Self {
        Self(BTreeMap::new())
    }

    /// Deals every kind once, in any order, and again and again until each lane is as long as `length`.
    pub(crate) fn deal(seed: u64, servers: usize, length: Duration, session: Duration) -> Self {
        let mut dice = StdRng::seed_from_u64(seed);
        let mut lanes = BTreeMap::new();
        for lane in [Lane::Servers, Lane::Clients, Lane::Strangers] {
            let mut deck: Vec<Fault> = Fault::all(servers).filter(|fault| fault.lane() == lane).collect();
            let mut planned: Vec<Planned> = Vec::new();
            let mut total = Duration::ZERO;
            while planned.is_empty() || total < length {
                deck.shuffle(&mut dice);
                for (number, fault) in deck.iter().enumerate() {
                    // All of the first deck, and of the later ones as many as there is time for.
                    if planned.len() > number && planned.len() >= deck.len() && total >= length {
                        break;
                    }
                    let next = Planned {
                        fault: *fault,
                        target: dice.random_range(0..60),
                        lasting: fault.lasting(session, &mut dice),
                        peace: fault.peace(session, &mut dice),
                    };
                    total += next.lasting + next.peace;
                    planned.push(next);
                }
            }
            lanes.insert(lane, planned);
        }
        Self(lanes)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const SESSION: Duration = Duration::from_secs(3);

    #[test]
    fn a_seed_is_the_same_plan_every_time() {
        let deal = |seed| Plan::deal(seed, 3, Duration::from_secs(60), SESSION);
        assert_eq!(deal(7), deal(7));
        assert_ne!(deal(7), deal(8));
    }

    #[test]
    fn every_kind_is_dealt_and_none_that_cannot_strike() {
        let mut ever = BTreeSet::new();
        for servers in [1, 3] {
            for length in [Duration::ZERO, Duration::from_secs(100)] {
                let Plan(lanes) = Plan::deal(1, servers, length, SESSION);
                let dealt: BTreeSet<Fault> = lanes.values().flatten().map(|planned| planned.fault).collect();
                assert_eq!(dealt, Fault::all(servers).collect());
                ever.extend(dealt);
                for planned in lanes.values() {
                    let total: Duration = planned.iter().map(|it| it.lasting + it.peace).sum();
                    assert!(total >= length);
                }
            }
        }
        assert_eq!(ever.len(), 23);
    }
}
