//! One script, two servers, equal answers: this server against ZooKeeper.

use std::time::Duration;

use lockkeeper_testserver::{Builder, TestServer};

use crate::player::Player;
use crate::real_server::{RealServer, left_out};
use crate::script::Script;

/// Short, so that expiry is quick. Both servers get it.
pub(crate) const TICK: u32 = 200;

/// Another test covers containers: the time of a removal depends on the server's checks.
const OPTIONS: [&str; 2] = ["zookeeper.extendedTypesEnabled=true", "znode.container.checkIntervalMs=3600000"];

fn ours() -> Builder {
    let builder = TestServer::builder().tick(Duration::from_millis(TICK.into())).ttl_nodes(true);
    builder.container_interval(Duration::from_secs(3600))
}

async fn compare(
    real: RealServer,
    ours: Builder,
    seeds: impl Iterator<Item = u64>,
    script: fn(u64) -> Script,
    steps: usize,
) {
    let ours = ours.start().await.unwrap();
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
                "seed {seed} differs (LOCKKEEPER_SEED={seed} replays it)\n{}\n{step}\n\
                 --- real\n{real}--- ours\n{ours}",
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
    if left_out() {
        return;
    }
    let real = RealServer::start(TICK, &OPTIONS).await;
    compare(real, ours(), seeds(12), Script::new, 150).await;
}

/// Watches of every kind on few paths: persistent and recursive ones beside those for one event, set again
/// after reconnects, and removed.
#[tokio::test]
async fn a_random_script_of_watches_has_the_same_answers_and_events_as_on_the_real_server() {
    if left_out() {
        return;
    }
    let real = RealServer::start(TICK, &OPTIONS).await;
    compare(real, ours(), seeds(12), Script::of_watches, 200).await;
}

/// On the server that the environment chooses: since 3.9 an event has the zxid of its transaction.
#[tokio::test]
async fn a_random_script_of_events_has_the_same_events_and_zxids_as_on_the_chosen_server() {
    if left_out() {
        return;
    }
    let real = RealServer::start_chosen(TICK, &OPTIONS).await;
    let version = real.version().await;
    println!("compared with ZooKeeper {version:?}");
    compare(real, ours().event_zxids(version >= (3, 9)), seeds(12), Script::of_events, 200).await;
}
