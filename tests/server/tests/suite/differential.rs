//! One script, two servers, equal answers: this server against Debian's.

use std::time::Duration;

use lockkeeper_testserver::TestServer;

use crate::debian::{Debian, left_out};
use crate::player::Player;
use crate::script::Script;

/// Short, so that expiry is quick. Both servers get it.
pub(crate) const TICK: u32 = 200;

async fn compare(seeds: impl Iterator<Item = u64>, script: fn(u64) -> Script, steps: usize) {
    if left_out() {
        return;
    }
    // Another test covers containers: the time of a removal depends on the server's checks.
    let hour = Duration::from_secs(3600);
    let look = format!("znode.container.checkIntervalMs={}", hour.as_millis());
    let real = Debian::start(TICK, &["zookeeper.extendedTypesEnabled=true", &look]).await;
    let builder = TestServer::builder().tick(Duration::from_millis(TICK.into())).ttl_nodes(true);
    let ours = builder.container_interval(hour).start().await.unwrap();
    let mut players =
        [Player::new("real", vec![real.address.clone()]), Player::new("ours", vec![ours.connect_string()])];
    let mut compared = 0;
    for seed in seeds {
        let script = script(seed);
        for player in &mut players {
            player.begin(script.root()).await;
        }
        let mut history: Vec<String> = Vec::new();
        for step in script.steps(steps) {
            let [real, ours] = &mut players;
            let (real, ours) = tokio::join!(real.play(&step), ours.play(&step));
            let step = step.to_string();
            assert!(
                real == ours,
                "seed {seed} differs (LOCKKEEPER_SEED={seed} replays it)\n{}\n{step}\n--- real\n{real}--- ours\n{ours}",
                history.join("\n")
            );
            history.push(step);
            compared += 1;
        }
        for player in &mut players {
            player.end().await;
        }
    }
    println!("{compared} steps compared");
}

pub(crate) fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// The seeds that the environment asks for.
fn seeds(default: u64) -> impl Iterator<Item = u64> {
    match number("LOCKKEEPER_SEED") {
        Some(seed) => seed..=seed,
        None => 1..=number("LOCKKEEPER_SCRIPTS").unwrap_or(default),
    }
}

#[tokio::test]
async fn a_random_script_has_the_same_answers_as_on_the_real_server() {
    compare(seeds(12), Script::new, 150).await;
}

/// Watches of every kind on few paths: persistent and recursive ones beside those for one event, set again after
/// reconnects, and removed.
#[tokio::test]
async fn a_random_script_of_watches_has_the_same_answers_and_events_as_on_the_real_server() {
    compare(seeds(12), Script::of_watches, 200).await;
}
