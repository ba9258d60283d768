//! The simulation: the real manager and recipes over a simulated ensemble, network and machine, in paused time.
//!
//! One seed decides everything: latency, broken connections, lost answers, expiry, processes that stand still, servers
//! that are behind, cancellation, the rates of clocks. First faults strike (the safety phase), then all is healed, and
//! everyone must be served (the healing phase). The [`oracle`] checks the promises of `docs/failure-model.md` all the
//! while.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a simulation that cannot go on fails its test"
)]

mod clients;
mod dice;
mod host;
mod oracle;
mod plan;
mod session;
mod wire;
mod world;

use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use crate::dice::Dice;
use crate::host::Process;
use crate::oracle::Oracle;
use crate::plan::Plan;
use crate::world::World;

/// What came of one seed.
struct Run {
    plan: Plan,
    broken: Vec<String>,
    trace: Vec<String>,
    grants: u64,
    losses: u64,
}

fn run(seed: u64, traced: bool) -> Run {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(simulate(seed, traced))
}

async fn simulate(seed: u64, traced: bool) -> Run {
    let mut dice = Dice::new(seed);
    let plan = Plan::draw(&mut dice);
    let world = World::new(plan.clone(), dice.fork());
    if traced {
        world.keep_trace();
    }
    let oracle = Oracle::default();
    let clients: Vec<_> = (0..plan.processes)
        .map(|number| {
            let process = Process::new(number, plan.drift, dice.fork());
            world.add(&process);
            let client = clients::run(world.clone(), oracle.clone(), process.clone(), dice.fork());
            process.run(client)
        })
        .collect();
    let turning = {
        let (world, oracle) = (world.clone(), oracle.clone());
        tokio::spawn(async move { world.turn(&oracle).await })
    };
    tokio::time::sleep(Duration::from_millis(plan.safety)).await;
    world.heal();
    // What was cut off without noticing expires; then all take their turns.
    let patience = Duration::from_millis(plan.patience());
    let served = tokio::time::timeout(patience, futures::future::join_all(clients)).await;
    match served {
        Err(_) => {
            oracle.breach(&world, format!("liveness: not everyone was served within {patience:?} of peace"))
        }
        Ok(managers) => {
            let managers: Vec<_> = managers.into_iter().filter_map(Result::ok).collect();
            leave_nothing(&world, &oracle).await;
            for manager in managers {
                if let Err(error) = manager.shutdown().await {
                    oracle.breach(&world, format!("shutdown: {error}"));
                }
            }
        }
    }
    turning.abort();
    if turning.await.is_err_and(|error| error.is_panic()) {
        oracle.breach(&world, "the world ended in a panic".to_owned());
    }
    let (grants, losses) = oracle.counts();
    Run { plan, broken: oracle.broken(), trace: world.trace(), grants, losses }
}

/// Promise 6: with everybody gone and the sessions alive, no node is left.
async fn leave_nothing(world: &World, oracle: &Oracle) {
    let patience = world.timeout() * 3;
    let left = || {
        world.machine(|machine| {
            let of =
                |session: &i64| machine.tree().ephemerals(*session).map(str::to_owned).collect::<Vec<_>>();
            machine.sessions().iter().flat_map(of).collect::<Vec<_>>()
        })
    };
    let end = Instant::now() + patience;
    while !left().is_empty() {
        if Instant::now() > end {
            return oracle.breach(world, format!("promise 6: {:?} left after {patience:?} of peace", left()));
        }
        tokio::time::sleep(patience / 100).await;
    }
}

/// So many by default: some seconds in a debug build.
const SEEDS: u64 = 150;

fn number(variable: &str) -> Option<u64> {
    let value = std::env::var(variable).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{variable}={value} is not a number")))
}

#[test]
fn every_seed_keeps_the_promises() {
    if let Some(seed) = number("LOCKKEEPER_SIM_SEED") {
        let run = run(seed, true);
        println!("{:#?}", run.plan);
        run.trace.iter().for_each(|line| println!("{line}"));
        assert!(run.broken.is_empty(), "seed {seed}: {:#?}", run.broken);
        return;
    }
    let began = Instant::now();
    let (first, enough) = how_many();
    let (mut seeds, mut grants, mut losses) = (0, 0, 0);
    while !enough(seeds, began.elapsed()) {
        let seed = first + seeds;
        let run = run(seed, false);
        assert!(
            run.broken.is_empty(),
            "{:#?}\nreplay: LOCKKEEPER_SIM_SEED={seed} cargo test -p lockkeeper-tests --test sim -- --nocapture",
            run.broken
        );
        seeds += 1;
        grants += run.grants;
        losses += run.losses;
    }
    println!("{seeds} seeds from {first}, {grants} grants, {losses} losses in {:.1?}", began.elapsed());
    assert!(seeds < 100 || grants > seeds && losses > 0, "nothing happens any more");
}

/// Which seed is the first, and when it is enough: so many of the same ones, or, as a soak, new ones for so long.
fn how_many() -> (u64, Box<dyn Fn(u64, Duration) -> bool>) {
    if std::env::var_os("LOCKKEEPER_SOAK").is_some_and(|soak| soak == "1") {
        let minutes = number("LOCKKEEPER_SIM_MINUTES").unwrap_or(10);
        let today = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let limit = Duration::from_secs(60 * minutes);
        return (today.as_secs() * 1_000, Box::new(move |_, elapsed| elapsed >= limit));
    }
    let seeds = number("LOCKKEEPER_SIM_SEEDS").unwrap_or(SEEDS);
    (number("LOCKKEEPER_SIM_FIRST").unwrap_or(0), Box::new(move |done, _| done >= seeds))
}

#[test]
fn a_seed_is_the_same_every_time() {
    for seed in 0..20 {
        let (first, second) = (run(seed, true), run(seed, true));
        let differ = first.trace.iter().zip(&second.trace).position(|(one, other)| one != other);
        if let Some(line) = differ {
            panic!("seed {seed}, line {line}:\n{}\n{}", first.trace[line], second.trace[line]);
        }
        assert_eq!(first.trace.len(), second.trace.len(), "seed {seed}");
    }
}
