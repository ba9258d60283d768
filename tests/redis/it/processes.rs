//! Several processes contend, and a witness outside of them sees who is inside.

use std::process::Stdio;
use std::time::Duration;

use lockkeeper_redis_tests::{RedisServer, Witness, left_out};
use lockkeeper_tests::{Timing, eventually};
use tokio::process::{Child, Command};

use crate::fixture::server;

/// The lock: for so many permits, and as many tasks of each process.
#[derive(Clone, Copy)]
struct Load {
    limit: usize,
    tasks: usize,
    rounds: u32,
    lease: Duration,
}

fn contender(server: &RedisServer, witness: &Witness, load: Load) -> Child {
    Command::new(env!("CARGO_BIN_EXE_redis_contender"))
        .args([&server.url(), "a", &witness.address(), &load.rounds.to_string()])
        .args([load.lease.as_millis().to_string(), load.limit.to_string(), load.tasks.to_string()])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

async fn contend_in_several_processes(processes: usize, load: Load) {
    let (server, witness) = (server().await, Witness::start(load.limit).await.unwrap());
    let contenders: Vec<Child> = (0..processes).map(|_| contender(&server, &witness, load)).collect();
    for mut contender in contenders {
        assert!(contender.wait().await.unwrap().success());
    }
    let observations = witness.observations();
    let entries = processes * load.tasks * load.rounds as usize;
    assert_eq!((observations.entries, observations.violations), (entries, Vec::new()));
}

#[tokio::test]
async fn several_processes_are_inside_one_at_a_time() {
    if left_out() {
        return;
    }
    let load = Load { limit: 1, tasks: 1, rounds: 25, lease: Duration::from_secs(30) };
    contend_in_several_processes(4, load).await;
}

#[tokio::test]
async fn several_tasks_of_several_processes_never_have_more_permits_than_there_are() {
    if left_out() {
        return;
    }
    let load = Load { limit: 3, tasks: 3, rounds: 20, lease: Duration::from_secs(30) };
    contend_in_several_processes(3, load).await;
}

/// A process that runs to its end, beside others that are killed one after another.
async fn survive(load: Load) {
    let (server, witness) = (server().await, Witness::start(load.limit).await.unwrap());
    let mut survivor = contender(&server, &witness, load);
    for _ in 0..3 {
        let mut victim = contender(&server, &witness, Load { rounds: u32::MAX, ..load });
        let before = witness.observations().entries;
        eventually("some rounds", Timing::event(), || async {
            (witness.observations().entries > before + 5).then_some(())
        })
        .await
        .unwrap();
        victim.kill().await.unwrap();
    }
    assert!(survivor.wait().await.unwrap().success());
    let observations = witness.observations();
    let entries = load.tasks * load.rounds as usize;
    assert!(observations.entries >= entries && observations.violations.is_empty(), "{observations:?}");
}

#[tokio::test]
async fn processes_that_are_killed_at_any_time_block_the_others_for_a_lease_at_most() {
    if left_out() {
        return;
    }
    survive(Load { limit: 1, tasks: 1, rounds: 60, lease: Timing::scaled(Duration::from_secs(3)) }).await;
}

#[tokio::test]
async fn permits_of_processes_that_are_killed_at_any_time_are_granted_to_the_others() {
    if left_out() {
        return;
    }
    survive(Load { limit: 2, tasks: 2, rounds: 30, lease: Timing::scaled(Duration::from_secs(3)) }).await;
}
