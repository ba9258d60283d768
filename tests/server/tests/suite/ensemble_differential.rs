//! One script, two ensembles of three, equal answers: sessions spread over the servers, moved by hand, and
//! moved because their server was killed.

use std::time::Duration;

use lockkeeper_testserver::{TestEnsemble, TestServer};
use thiserror::Error;
use tokio::time::timeout;

use crate::differential::{TICK, number};
use crate::player::Player;
use crate::real_server::{RealServer, left_out};
use crate::script::{Script, Step};

/// How many steps there are between one server's end or return and the next.
const STEPS: usize = 40;

/// A real server that has not played a step by then keeps a request. A connection waits longer for an answer,
/// and fails the test then.
const SILENCE: Duration = Duration::from_secs(15);

/// How often a script is begun.
const TRIES: usize = 3;

/// A real server keeps a request for ever, as it says itself: see `docs/protocol.md`.
#[derive(Debug, Error)]
#[error("a real server does not answer, and has {outstanding} requests outstanding")]
struct Stuck {
    outstanding: u64,
}

/// What is not the fault of a real server ends the test.
async fn stuck(servers: &[RealServer]) -> Stuck {
    let mut outstanding = 0;
    for server in servers {
        outstanding += server.outstanding().await.unwrap_or(0);
    }
    assert!(outstanding > 0, "no answer from a real server that has no request outstanding");
    Stuck { outstanding }
}

/// Which server is killed.
#[derive(Clone, Copy, Debug)]
enum Victim {
    Leader,
    Follower,
}

/// Kills one of the real servers. Answers which one it was, once the others serve.
async fn kill_real(servers: &mut [RealServer], victim: Victim) -> usize {
    let mut index = 0;
    for (at, server) in servers.iter().enumerate() {
        let is_leader = server.serving().await == "leader";
        if is_leader == matches!(victim, Victim::Leader) {
            index = at;
        }
    }
    servers[index].kill();
    let left = servers.iter().enumerate().filter(|(at, _)| *at != index);
    let left: Vec<&RealServer> = left.map(|(_, server)| server).collect();
    // A follower that has lost its leader may still say what it was.
    while modes_of(&left).await != ["follower", "leader"] {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    index
}

/// The modes of these servers, in alphabetical order.
async fn modes_of(servers: &[&RealServer]) -> Vec<String> {
    let mut modes = Vec::new();
    for server in servers {
        modes.push(server.serving().await);
    }
    modes.sort();
    modes
}

struct Comparison {
    players: [Player; 2],
    history: Vec<String>,
    seed: u64,
    compared: usize,
}

impl Comparison {
    fn compare(&mut self, step: String, real: &str, ours: &str) {
        let (seed, history) = (self.seed, self.history.join("\n"));
        assert!(
            real == ours,
            "seed {seed} differs (LOCKKEEPER_SEED={seed} replays it)\n{history}\n{step}\n\
             --- real\n{real}--- ours\n{ours}"
        );
        self.history.push(step);
        self.compared += 1;
    }

    async fn play(&mut self, steps: &[Step], servers: &[RealServer]) -> Result<(), Stuck> {
        for step in steps {
            // One of ours that does not answer ends the test.
            println!("{step}");
            let [real, ours] = &mut self.players;
            let (real, ours) = tokio::join!(timeout(SILENCE, real.play(step)), ours.play(step));
            match real {
                Ok(real) => self.compare(step.to_string(), &real, &ours),
                Err(_) => return Err(stuck(servers).await),
            }
        }
        Ok(())
    }

    /// Which of three servers serve now.
    async fn settle(&mut self, what: String, is_alive: impl Fn(usize) -> bool, all: bool) {
        let alive: Vec<usize> = (0..3).filter(|index| is_alive(*index)).collect();
        let [real, ours] = &mut self.players;
        let (real, ours) = tokio::join!(real.settle(&alive, all), ours.settle(&alive, all));
        self.compare(what, &real, &ours);
    }
}

async fn compare(seeds: impl Iterator<Item = u64>) {
    if left_out() {
        return;
    }
    for seed in seeds {
        let mut tries = 1;
        while let Err(stuck) = compare_once(seed).await {
            assert!(tries < TRIES, "{stuck}");
            println!("{stuck}; anew with other servers");
            tries += 1;
        }
    }
}

async fn compare_once(seed: u64) -> Result<(), Stuck> {
    let hour = Duration::from_secs(3600);
    let look = format!("znode.container.checkIntervalMs={}", hour.as_millis());
    let mut real = RealServer::start_three(TICK, &["zookeeper.extendedTypesEnabled=true", &look]).await;
    let tick = Duration::from_millis(TICK.into());
    let builder = TestServer::builder().tick(tick).ttl_nodes(true);
    let builder = builder.session_timeouts(tick * 2, Duration::from_secs(60));
    let ours = builder.container_interval(hour).start_ensemble(3).await.unwrap();
    let real_at: Vec<String> = real.iter().map(|server| server.address.clone()).collect();
    println!("seed {seed}, the real servers are at {real_at:?}");
    let players = [Player::new("real", real_at), Player::new("ours", addresses(&ours))];
    let mut comparison = Comparison { players, history: Vec::new(), seed, compared: 0 };
    let script = Script::new(seed);
    for player in &mut comparison.players {
        player.begin(script.root()).await;
    }
    let steps = script.steps(STEPS * 5);
    let mut parts = steps.chunks(STEPS);
    for victim in [Victim::Follower, Victim::Leader] {
        comparison.play(parts.next().unwrap_or_default(), &real).await?;
        let index = kill_real(&mut real, victim).await;
        // Any one of ours: it has no quorum to lose.
        ours.server(index).unwrap().stop().await;
        // With the leader go the connections of all servers.
        let all = matches!(victim, Victim::Leader);
        comparison.settle(format!("{victim:?} killed"), |server| server != index, all).await;
        comparison.play(parts.next().unwrap_or_default(), &real).await?;
        real[index].launch();
        real[index].serving().await;
        ours.server(index).unwrap().restart().await.unwrap();
        comparison.settle(format!("{victim:?} back"), |_| true, false).await;
    }
    comparison.play(parts.next().unwrap_or_default(), &real).await?;
    for player in &mut comparison.players {
        player.end().await;
    }
    println!("{} steps compared", comparison.compared);
    Ok(())
}

fn addresses(ensemble: &TestEnsemble) -> Vec<String> {
    ensemble.servers().iter().map(TestServer::connect_string).collect()
}

#[tokio::test]
async fn a_random_script_over_three_servers_has_the_same_answers_as_on_three_real_ones() {
    match number("LOCKKEEPER_SEED") {
        Some(seed) => compare(seed..=seed).await,
        None => compare(1..=number("LOCKKEEPER_ENSEMBLE_SCRIPTS").unwrap_or(1)).await,
    }
}
