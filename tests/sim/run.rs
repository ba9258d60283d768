//! The run of one seed, from its random numbers to its verdict.

use std::time::Duration;

use lockkeeper::Counter;
use lockkeeper::znodes::CreateMode;
use lockkeeper_core::{ConnectionPool, NodeName, State};
use lockkeeper_testserver::tree::Tree;
use tokio::time::Instant;

use crate::clients::{self, is_full};
use crate::environment::Process;
use crate::lost;
use crate::oracle::{NUMBER, Oracle};
use crate::plan::{BUDGET, Plan};
use crate::rng::Rng;
use crate::world::World;

/// The result of one seed.
pub(crate) struct Run {
    pub(crate) plan: Plan,
    pub(crate) broken: Vec<String>,
    pub(crate) trace: Vec<String>,
    pub(crate) grants: u64,
    pub(crate) losses: u64,
    pub(crate) additions: u64,
    pub(crate) shown: u64,
    pub(crate) refused: u64,
}

/// Runs a seed; with `traced` the run keeps a trace.
pub(crate) fn run(seed: u64, traced: bool) -> Run {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(simulate(seed, traced))
}

async fn simulate(seed: u64, traced: bool) -> Run {
    let mut rng = Rng::new(seed);
    let plan = Plan::draw(&mut rng);
    let world = World::new(plan.clone(), rng.fork());
    if traced {
        world.keep_trace();
    }
    lost::listen(&world);
    let oracle = Oracle::default();
    let clients: Vec<_> = (0..plan.processes)
        .map(|number| {
            let process = Process::new(number, plan.drift, rng.fork());
            world.add(&process);
            let client = clients::run(world.clone(), oracle.clone(), process.clone(), rng.fork());
            process.run(client)
        })
        .collect();
    let running = {
        let (world, oracle) = (world.clone(), oracle.clone());
        tokio::spawn(async move { world.run(&oracle).await })
    };
    // The passing of simulated time is the subject: faults strike for as long as the safety phase lasts.
    tokio::time::sleep(Duration::from_millis(plan.safety)).await;
    world.heal();
    // Sessions that were cut off without noticing expire; then every client is served.
    let patience = Duration::from_millis(plan.patience());
    let served = tokio::time::timeout(patience, futures::future::join_all(clients)).await;
    match served {
        Err(_) => {
            oracle.breach(&world, format!("liveness: not everyone was served within {patience:?} of peace"))
        }
        Ok(pools) => {
            let pools: Vec<_> = pools.into_iter().filter_map(Result::ok).collect();
            leave_nothing(&world, &oracle).await;
            for pool in pools {
                if tokio::time::timeout(patience, all_connected(&pool)).await.is_err() {
                    oracle.breach(&world, "liveness: an unused session is not connected".to_owned());
                }
                if plan.room.is_some() && !plan.counts {
                    fill(&world, &oracle, &pool, patience).await;
                }
                if let Err(error) = pool.shutdown().await {
                    oracle.breach(&world, format!("shutdown: {error}"));
                }
            }
        }
    }
    running.abort();
    if running.await.is_err_and(|error| error.is_panic()) {
        oracle.breach(&world, "the world ended in a panic".to_owned());
    }
    oracle.check_log(&world);
    oracle.check_additions(&world);
    lost::end();
    let ((grants, losses), (additions, shown)) = (oracle.counts(), oracle.counts_beside());
    let (broken, trace, refused) = (oracle.broken(), world.trace(), oracle.refusals());
    Run { plan, broken, trace, grants, losses, additions, shown, refused }
}

/// Waits until the unused sessions are connected again, too: a session without a connection cannot be
/// closed in order. Nor can one that has expired while its server was cut off, and does not know it: the
/// quorum is asked.
async fn all_connected(pool: &ConnectionPool) {
    for manager in pool.managers() {
        let mut transitions = manager.transitions();
        while !matches!(manager.state(), State::Connected(_) | State::Closed) {
            transitions.next().await;
        }
        let counter = Counter::new(manager, NUMBER).expect("a path");
        while counter.get().await.is_err_and(|error| !error.is_closed()) {}
    }
}

/// The whole budget of each session is free again when its nodes are gone.
async fn fill(world: &World, oracle: &Oracle, pool: &ConnectionPool, patience: Duration) {
    for manager in pool.managers() {
        let filled = async {
            // What was given up before may still be searched for.
            while let Err(error) = manager.znodes().create(filler(), b"", CreateMode::Ephemeral).await {
                world.note(|| format!("the budget is not free: {error}"));
                tokio::time::sleep(patience / 100).await;
                // A session that a server has replaced may end only now, without an answer to the create.
                if !is_full(&error) {
                    let _ = manager.znodes().delete(filler()).await;
                }
            }
        };
        if tokio::time::timeout(patience, filled).await.is_err() {
            oracle.breach(world, "liveness: the budget of a session is not free again".to_owned());
        }
        let _ = manager.znodes().delete(filler()).await;
    }
}

/// A node that takes the whole budget.
fn filler() -> String {
    format!("/{}", "f".repeat(BUDGET - 5))
}

/// Promise 6: when every guard is released and the sessions live, no node is left, and no watch.
async fn leave_nothing(world: &World, oracle: &Oracle) {
    let patience = world.timeout() * 3;
    let left = || {
        world.machine(|machine| {
            let nodes = machine.tree().node("/locks").map(|node| node.children.clone()).unwrap_or_default();
            let below = |lock: &String| below(machine.tree(), &format!("/locks/{lock}"));
            let watches: usize = (0..machine.servers()).map(|server| machine.watch_count(server)).sum();
            (nodes.iter().flat_map(below).collect::<Vec<_>>(), watches)
        })
    };
    let end = Instant::now() + patience;
    while left() != (Vec::new(), 0) {
        if Instant::now() > end {
            let (nodes, watches) = left();
            let text = format!("promise 6: {nodes:?} and {watches} watches left after {patience:?} of peace");
            return oracle.breach(world, text);
        }
        // In paused time, so the poll costs nothing and misses nothing.
        tokio::time::sleep(patience / 100).await;
    }
}

/// The contenders' nodes of one lock: all with a sequence number. Starts of a rate limiter are meant to stay.
fn below(tree: &Tree, directory: &str) -> Vec<String> {
    let names = tree.node(directory).map(|node| node.children.clone()).unwrap_or_default();
    // The records of slots are meant to stay, too.
    let contends = |name: &&String| !name.contains("start-") && !directory.ends_with("/slots");
    let paths = names.iter().filter(contends).map(|name| format!("{directory}/{name}"));
    let (nodes, directories): (Vec<_>, Vec<_>) =
        paths.partition(|path| path.rsplit('/').next().is_some_and(|name| NodeName::parse(name).is_some()));
    nodes.into_iter().chain(directories.iter().flat_map(|path| below(tree, path))).collect()
}
