//! Holders are stopped between any two requests for longer than their lease, while others take over.

use std::env;

use lockkeeper_fence::FencingToken;
use lockkeeper_tests::Timing;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::time::Instant;

use crate::database::Database;
use crate::holder::{Holder, STEPS, StepEnd, Work};
use crate::link::Link;

const SEATS: i64 = 3;

/// The resource of one history, its holders, and what they have committed.
struct History<'a> {
    database: &'a Database,
    links: &'a mut Vec<Link>,
    resource: String,
    is_fenced: bool,
    /// The newest token with which a transaction was committed.
    newest: u64,
    /// The level of isolation of each holder: a digit to the base of three.
    levels: u64,
    granted: u64,
    found: Found,
}

/// What must not happen, and what must, or the histories show nothing.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    /// Orders that were committed after a transaction of a newer holder.
    stale: u32,
    oversold: u32,
    /// Readers whose stock changed under their lock.
    changed: u32,
    orders: u32,
    refused: u32,
    blocked: u32,
}

impl Found {
    fn add(&mut self, other: Self) {
        self.stale += other.stale;
        self.oversold += other.oversold;
        self.changed += other.changed;
        self.orders += other.orders;
        self.refused += other.refused;
        self.blocked += other.blocked;
    }
}

impl<'a> History<'a> {
    async fn begin(database: &'a Database, links: &'a mut Vec<Link>, name: &str, is_fenced: bool) -> Self {
        let resource = format!("{name}/{}", if is_fenced { "fenced" } else { "unfenced" });
        let mut link = link(database, links).await;
        let stock = format!("INSERT INTO stock VALUES ('{resource}', {SEATS})");
        // A connection of the history before, whose holder was killed, may have yet to roll back.
        let end = Instant::now() + Timing::event();
        while let Err(error) = link.run(&stock).await {
            assert!(Instant::now() < end, "{error}");
            tokio::task::yield_now().await;
        }
        links.push(link);
        Self {
            database,
            links,
            resource,
            is_fenced,
            newest: 0,
            levels: 0,
            granted: 0,
            found: Found::default(),
        }
    }

    /// Grants the lock, whether the holder before has ended or is stopped.
    async fn grant(&mut self, work: Work) -> Holder {
        self.granted += 1;
        let link = link(self.database, self.links).await;
        let token = FencingToken::new(self.granted);
        let begin = self.database.impatient(self.levels % 3);
        self.levels /= 3;
        Holder::new(link, begin, &self.resource, token, work, self.is_fenced)
    }

    /// One request of a holder.
    async fn turn(&mut self, holder: &mut Holder) -> StepEnd {
        let writes = holder.writes();
        let turn = holder.turn().await;
        let token = holder.token.as_u64();
        match turn {
            StepEnd::Committed => {
                self.found.orders += u32::from(writes);
                self.found.stale += u32::from(writes && token < self.newest);
                self.newest = self.newest.max(token);
            }
            StepEnd::Refused => self.found.refused += 1,
            StepEnd::Blocked => self.found.blocked += 1,
            StepEnd::Done => {}
        }
        turn
    }

    fn end(&mut self, holder: Holder) {
        self.found.changed += u32::from(holder.saw_a_change());
        self.links.push(holder.into_link());
    }

    async fn found(mut self) -> Found {
        let mut link = link(self.database, self.links).await;
        let resource = &self.resource;
        let orders = format!("SELECT count(*) FROM orders WHERE resource = '{resource}'");
        let orders = link.number(&orders).await.unwrap();
        let left = format!("SELECT seats FROM stock WHERE resource = '{resource}'");
        let left = link.number(&left).await.unwrap();
        self.links.push(link);
        self.found.oversold =
            (orders - (SEATS - left)).try_into().expect("orders are written with the stock");
        self.found
    }
}

async fn link(database: &Database, links: &mut Vec<Link>) -> Link {
    match links.pop() {
        Some(link) => link,
        None => database.link().await,
    }
}

/// The history of a seed: up to six holders, each stopped anywhere, some of them killed there.
async fn random(database: &Database, links: &mut Vec<Link>, seed: u64, is_fenced: bool) -> Found {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut history = History::begin(database, links, &format!("random/{seed}"), is_fenced).await;
    history.levels = seed;
    let mut holders: Vec<Holder> = Vec::new();
    let mut blocked: Vec<FencingToken> = Vec::new();
    while history.granted < 6 || !holders.is_empty() {
        if history.granted < 6 && (holders.is_empty() || rng.random_bool(0.15)) {
            let work = if rng.random_bool(0.25) { Work::Look } else { Work::Sell };
            let holder = history.grant(work).await;
            holders.push(holder);
            continue;
        }
        // A holder that another one blocks waits until some transaction has ended.
        let free: Vec<usize> =
            (0..holders.len()).filter(|at| !blocked.contains(&holders[*at].token)).collect();
        let chosen = if free.is_empty() { 0 } else { free[rng.random_range(0..free.len())] };
        if rng.random_bool(0.01) {
            // The end of its connection rolls its transaction back.
            drop(holders.swap_remove(chosen));
            blocked.clear();
            continue;
        }
        let turn = history.turn(&mut holders[chosen]).await;
        match turn {
            StepEnd::Blocked => blocked.push(holders[chosen].token),
            StepEnd::Committed | StepEnd::Refused => blocked.clear(),
            StepEnd::Done => {}
        }
        if turn == StepEnd::Refused || holders[chosen].is_done() {
            history.end(holders.swap_remove(chosen));
        }
    }
    history.found().await
}

/// A holder is stopped after `first` requests, the next one makes `second` requests, and both continue.
async fn taken_over(
    database: &Database,
    links: &mut Vec<Link>,
    (first, second): (usize, usize),
    is_fenced: bool,
) -> Found {
    let mut history = History::begin(database, links, &format!("step/{first}/{second}"), is_fenced).await;
    history.levels = (first + 4 * second) as u64 % 9;
    let mut late = history.grant(Work::Sell).await;
    for _ in 0..first {
        history.turn(&mut late).await;
    }
    let mut next = history.grant(Work::Sell).await;
    for _ in 0..second {
        history.turn(&mut next).await;
    }
    while !late.is_done() {
        let turn = history.turn(&mut late).await;
        if turn == StepEnd::Refused {
            break;
        }
        // The next holder may have a transaction open, and ends it first.
        if turn == StepEnd::Blocked && !next.is_done() && history.turn(&mut next).await == StepEnd::Refused {
            break;
        }
    }
    history.end(late);
    while !next.is_done() && history.turn(&mut next).await != StepEnd::Refused {}
    history.end(next);
    history.found().await
}

fn assert_only_the_fence_keeps(fenced: Found, unfenced: Found, at: &str) {
    println!("{at}: with the fence {fenced:?}, without {unfenced:?}");
    assert_eq!((fenced.stale, fenced.oversold, fenced.changed), (0, 0, 0), "{at}: {fenced:?}");
    assert!(fenced.refused > 0 && fenced.blocked > 0 && fenced.orders > 0, "{at}: {fenced:?}");
    assert!(unfenced.stale > 0 && unfenced.oversold > 0, "{at}: {unfenced:?}");
}

#[tokio::test]
async fn a_holder_that_is_taken_over_at_any_step_writes_nothing_stale() {
    for database in Database::all().await {
        let mut links = Vec::new();
        let mut found = [Found::default(); 2];
        for steps in (0..=STEPS).flat_map(|first| (0..=STEPS).map(move |second| (first, second))) {
            for (found, is_fenced) in found.iter_mut().zip([true, false]) {
                let of_case = taken_over(&database, &mut links, steps, is_fenced).await;
                assert!(
                    !is_fenced || of_case.stale + of_case.oversold == 0,
                    "{database:?} {steps:?} {of_case:?}"
                );
                found.add(of_case);
            }
        }
        assert_only_the_fence_keeps(found[0], found[1], &format!("{database:?}"));
    }
}

#[tokio::test]
async fn holders_that_are_stopped_and_killed_anywhere_write_nothing_stale() {
    let histories = env::var("LOCKKEEPER_FENCE_HISTORIES").ok().and_then(|number| number.parse().ok());
    for database in Database::all().await {
        let mut links = Vec::new();
        let mut found = [Found::default(); 2];
        for seed in 0..histories.unwrap_or(200) {
            for (found, is_fenced) in found.iter_mut().zip([true, false]) {
                let of_seed = random(&database, &mut links, seed, is_fenced).await;
                let wrong = of_seed.stale + of_seed.oversold + of_seed.changed;
                assert!(!is_fenced || wrong == 0, "{database:?} seed {seed} {of_seed:?}");
                found.add(of_seed);
            }
        }
        assert_only_the_fence_keeps(found[0], found[1], &format!("{database:?}"));
        assert!(found[1].changed > 0, "no reader saw a late write: {:?}", found[1]);
    }
}
