//! The simulation: the real manager and recipes over a simulated ensemble, network and machine, in paused
//! time.
//!
//! One seed decides everything: latency, broken connections, lost answers, expiry, paused processes, servers
//! that are behind, cancellation, the rates of clocks. First faults strike (the safety phase), then all is
//! healed, and every client must be granted its locks (the healing phase). The [`oracle`] checks the promises
//! of `docs/failure-model.md` all the while.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a simulation that cannot continue fails its test"
)]

mod changes;
mod clients;
mod environment;
mod fault;
mod locks;
mod lost;
mod oracle;
mod partitions;
mod plan;
mod queues;
mod registrations;
mod rng;
mod run;
mod seeds;
mod session;
mod stored;
mod wire;
mod witness;
mod world;

use tokio::time::Instant;

use crate::run::run;
use crate::seeds::{Seeds, number};

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
    let seeds = Seeds::chosen();
    let outcome = seeds.run();
    if let Some((seed, broken)) = outcome.failed.first_key_value() {
        panic!(
            "seed {seed}: {broken:#?}\nreplay: LOCKKEEPER_SIM_SEED={seed} cargo test -p lockkeeper-sim \
             -- --nocapture"
        );
    }
    println!("{outcome:?} from {} in {:.1?}", seeds.first, began.elapsed());
    let is_busy = outcome.grants > outcome.seeds && outcome.losses > 0;
    let is_busy = is_busy && outcome.additions > outcome.seeds / 10 && outcome.shown > outcome.seeds / 10;
    let is_busy = is_busy && outcome.refused > outcome.seeds / 100;
    assert!(outcome.seeds < 100 || is_busy, "nothing happens any more");
}

/// The line without the deadline in a node's data, which is by the machine's time of day.
fn without_deadline(line: &str) -> String {
    let mut parts = line.split(" until=");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |line, part| line + part.trim_start_matches(|digit: char| digit.is_ascii_digit()))
}

#[test]
fn a_seed_is_the_same_every_time() {
    for seed in 0..20 {
        let (first, second) = (run(seed, true), run(seed, true));
        let mut lines = first.trace.iter().zip(&second.trace);
        let differ =
            lines.position(|(one, other)| one != other && without_deadline(one) != without_deadline(other));
        if let Some(line) = differ {
            panic!("seed {seed}, line {line}:\n{}\n{}", first.trace[line], second.trace[line]);
        }
        assert_eq!(first.trace.len(), second.trace.len(), "seed {seed}");
    }
}
