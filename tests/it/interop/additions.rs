//! One counter of Curator's `DistributedAtomicLong` and of ours, while processes of both are killed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lockkeeper::Counter;
use lockkeeper_test_recipes::{Addition, AdditionEnd, judge_additions};
use lockkeeper_tests::{Ensemble, RawClient, left_out};
use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::task::JoinSet;

use super::fixture::{Failure, Outcome, chosen_seed};
use super::peer_slot::{Language, PeerSlot};
use crate::support::connect;

const PATH: &str = "/interop/long";
/// The test does not wait for the end of a session: long, so that a busy machine does not end one.
const SESSION: Duration = Duration::from_secs(10);
/// The threads of each process, and how many additions of each are confirmed.
const THREADS: usize = 2;
const ADDITIONS: usize = 12;
/// The kills of each language.
const KILLS: usize = 3;

/// Adds ones until `ADDITIONS` of them are confirmed.
async fn add(
    slot: Arc<PeerSlot>,
    clock: Arc<AtomicU64>,
    thread: String,
    mut client: RawClient,
    mut rng: StdRng,
) -> Result<Vec<Addition>, Failure> {
    let request = format!("addlong {thread} {PATH} 1 1");
    let (mut additions, mut confirmed) = (Vec::new(), 0);
    while confirmed < ADDITIONS {
        let begun = clock.fetch_add(1, Ordering::SeqCst);
        let answer = slot.ask(&request, &mut client, &mut rng).await?;
        let ended = clock.fetch_add(1, Ordering::SeqCst);
        let end = match answer {
            Some(sum) => AdditionEnd::Sum(sum.parse()?, ended),
            None => AdditionEnd::Unknown,
        };
        confirmed += usize::from(end != AdditionEnd::Unknown);
        additions.push(Addition { begun, end });
    }
    Ok(additions)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_of_java_and_rust_counts_each_addition_once_while_both_are_killed() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let seed = chosen_seed();
    let ensemble = Ensemble::shared().await?;
    let servers = ensemble.connect_string();
    let clock = Arc::new(AtomicU64::new(0));
    let (mut tasks, mut slots) = (JoinSet::new(), Vec::new());
    for language in [Language::Java, Language::Rust] {
        let slot = Arc::new(PeerSlot::start(language, &servers, SESSION, KILLS).await?);
        for number in 0..THREADS {
            let (slot, clock) = (Arc::clone(&slot), Arc::clone(&clock));
            let rng = StdRng::seed_from_u64(seed ^ tasks.len() as u64);
            let thread = format!("{language:?}{number}");
            tasks.spawn(add(slot, clock, thread, ensemble.raw().await?, rng));
        }
        slots.push(slot);
    }
    let mut additions = Vec::new();
    while let Some(ended) = tasks.join_next().await {
        additions.extend(ended??);
    }
    let killed: usize = slots.iter().map(|slot| KILLS - slot.kills_left()).sum();
    assert!(killed > 0, "no process was killed");

    let last = Counter::new(&connect(&servers).await, PATH)?.get().await?;
    judge_additions(&additions, last).map_err(|wrong| format!("{wrong}: {additions:#?}"))?;
    let (java, _) = slots[0].peer();
    assert_eq!(java.ask(&format!("addlong reader {PATH} 0 0")).await?, last.to_string());
    Ok(())
}
