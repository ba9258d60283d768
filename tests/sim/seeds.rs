//! Which seeds run, and all of them on all cores.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::oracle::Oracle;
use crate::run::run;
use crate::world::World;

/// The default number of seeds: some seconds.
const SEEDS: u64 = 1_000;

/// The results of all seeds.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) seeds: u64,
    pub(crate) grants: u64,
    pub(crate) losses: u64,
    /// Additions whose sum is known, and differences that views have shown.
    pub(crate) additions: u64,
    pub(crate) shown: u64,
    /// Calls that were refused for want of room in their session's budget.
    pub(crate) refused: u64,
    /// The broken promises of each failing seed.
    pub(crate) failed: BTreeMap<u64, Vec<String>>,
}

/// Which seed is the first, and when it is enough.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seeds {
    pub(crate) first: u64,
    pub(crate) limit: Limit,
}

/// When it is enough.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Limit {
    Seeds(u64),
    Time(Duration),
}

pub(crate) fn number(variable: &str) -> Option<u64> {
    let value = std::env::var(variable).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{variable}={value} is not a number")))
}

impl Seeds {
    /// A number of fixed seeds, or, as a soak, new ones for a time.
    pub(crate) fn chosen() -> Self {
        if std::env::var_os("LOCKKEEPER_SOAK").is_some_and(|soak| soak == "1") {
            let minutes = number("LOCKKEEPER_SIM_MINUTES").unwrap_or(10);
            let today = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            return Self {
                first: today.as_secs() * 1_000,
                limit: Limit::Time(Duration::from_secs(60 * minutes)),
            };
        }
        let seeds = number("LOCKKEEPER_SIM_SEEDS").unwrap_or(SEEDS);
        Self { first: number("LOCKKEEPER_SIM_FIRST").unwrap_or(0), limit: Limit::Seeds(seeds) }
    }

    /// Runs them on all cores until one fails. Those that were begun before it are finished, so that the
    /// lowest failing seed is always the same.
    pub(crate) fn run(self) -> Outcome {
        let began = Instant::now();
        let (next, outcome) = (AtomicU64::new(0), Mutex::new(Outcome::default()));
        let work = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let is_enough = match self.limit {
                    Limit::Seeds(seeds) => number >= seeds,
                    Limit::Time(limit) => began.elapsed() >= limit,
                };
                if is_enough || !outcome.lock().failed.is_empty() {
                    return;
                }
                let run = run(self.first + number, false);
                let mut outcome = outcome.lock();
                outcome.seeds += 1;
                outcome.grants += run.grants;
                outcome.losses += run.losses;
                outcome.additions += run.additions;
                outcome.shown += run.shown;
                outcome.refused += run.refused;
                if !run.broken.is_empty() {
                    outcome.failed.insert(self.first + number, run.broken);
                }
            }
        };
        thread::scope(|scope| {
            for _ in 0..thread::available_parallelism().map_or(1, NonZero::get) {
                scope.spawn(work);
            }
        });
        outcome.into_inner()
    }
}

/// Runs these seeds on all cores, or the one that is to be replayed, each in paused time: what was broken in
/// each, and its trace. Fails with the lowest seed that breaks something.
pub(crate) fn each<S>(seeds: u64, module: &str, simulate: impl Fn(u64, bool) -> S + Sync)
where
    S: Future<Output = (Vec<String>, Vec<String>)>,
{
    let replayed = number("LOCKKEEPER_SIM_SEED");
    let first = replayed.or_else(|| number("LOCKKEEPER_SIM_FIRST")).unwrap_or(0);
    let count = if replayed.is_some() { 1 } else { number("LOCKKEEPER_SIM_SEEDS").unwrap_or(seeds) };
    let (next, failed) = (AtomicU64::new(first), Mutex::new(BTreeMap::new()));
    let work = || {
        let builder =
            || tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed - first >= count || !failed.lock().is_empty() {
                return;
            }
            let runtime = builder().expect("a runtime");
            let (broken, trace) = runtime.block_on(simulate(seed, replayed.is_some()));
            trace.iter().for_each(|line| println!("{line}"));
            if !broken.is_empty() {
                failed.lock().insert(seed, broken);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, NonZero::get) {
            scope.spawn(work);
        }
    });
    if let Some((seed, broken)) = failed.into_inner().first_key_value() {
        panic!(
            "seed {seed}: {broken:#?}\nreplay: LOCKKEEPER_SIM_SEED={seed} cargo test -p lockkeeper-sim \
             {module} -- --nocapture"
        );
    }
}

/// Waits until nothing is wrong, or reports it after `patience`. Polls in paused time, which costs nothing
/// and misses nothing.
pub(crate) async fn becomes(
    world: &World,
    oracle: &Oracle,
    patience: Duration,
    wrong: impl Fn() -> Option<String>,
) {
    let end = Instant::now() + patience;
    while let Some(wrong) = wrong() {
        if Instant::now() > end {
            return oracle.breach(world, format!("liveness: {wrong} after {patience:?} of peace"));
        }
        tokio::time::sleep(patience / 1_000).await;
    }
}
