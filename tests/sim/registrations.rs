//! Registrations under the same faults: each process has a node of its own, and all want one more.
//!
//! While faults strike, the processes write data, drop registrations and make them again. When all is healed,
//! each process has its own node with its last data, one of them has the common node, and the others know its
//! owner. When all registrations have ended, no node is left.

use std::sync::Arc;
use std::time::Duration;

use lockkeeper::{ConnectionManager, ConnectionPool, Error, OnDeletion, PresenceState, Registration};
use tokio::time::{sleep, timeout};

use crate::clients::connect;
use crate::environment::Process;
use crate::fault::Fault;
use crate::lost;
use crate::oracle::Oracle;
use crate::plan::Plan;
use crate::rng::Rng;
use crate::seeds::{becomes, each};
use crate::world::World;

/// The default number of seeds: some seconds.
const SEEDS: u64 = 500;

const COMMON: &str = "/registered/common";

/// What a process has when all is healed.
struct Client {
    pool: ConnectionPool,
    own: Registration,
    common: Registration,
    data: String,
}

#[test]
fn every_seed_keeps_registrations() {
    each(SEEDS, "registrations", simulate);
}

async fn simulate(seed: u64, is_traced: bool) -> (Vec<String>, Vec<String>) {
    let mut rng = Rng::new(seed);
    let mut plan = Plan::draw(&mut rng);
    // These concern queues, or end a process, which then has no registration.
    let is_kept = |fault: &Fault| !matches!(fault, Fault::CountAhead | Fault::CuratorsLease | Fault::Crash);
    plan.faults.retain(is_kept);
    let world = World::new(plan.clone(), rng.fork());
    if is_traced {
        world.keep_trace();
    }
    lost::listen(&world);
    let oracle = Oracle::default();
    let clients: Vec<_> = (0..plan.processes)
        .map(|number| {
            let process = Process::new(number, plan.drift, rng.fork());
            world.add(&process);
            process.run(live(world.clone(), process.clone(), rng.fork()))
        })
        .collect();
    let running = {
        let (world, oracle) = (world.clone(), oracle.clone());
        tokio::spawn(async move { world.run(&oracle).await })
    };
    // The passing of simulated time is the subject: faults strike for as long as the safety phase lasts.
    sleep(Duration::from_millis(plan.safety)).await;
    world.heal();
    let patience = Duration::from_millis(plan.patience());
    match timeout(patience, futures::future::join_all(clients)).await {
        Err(_) => oracle.breach(&world, "liveness: a process has not ended its work".to_owned()),
        Ok(clients) => judge(&world, &oracle, clients.into_iter().map(Result::unwrap).collect()).await,
    }
    running.abort();
    lost::end();
    (oracle.broken(), world.trace())
}

/// Registers, writes and ends registrations until all is healed, and returns the last ones.
async fn live(world: World, process: Arc<Process>, mut rng: Rng) -> Client {
    let plan = world.plan();
    let pool = connect(&world, &process, &mut rng).await;
    let path = format!("/registered/p{}", process.number);
    let register = |path: &str, data: &str| {
        Registration::register_with(manager(&pool, path), path, data, OnDeletion::Recreate).unwrap()
    };
    let (mut own, mut common) = (register(&path, "0"), register(COMMON, &path));
    let mut data = "0".to_owned();
    for step in 1_u32.. {
        // A process that is paused wakes up late.
        sleep(Duration::from_millis(rng.between(1, plan.timeout / 2))).await;
        if world.is_healing() {
            break;
        }
        match rng.index(4) {
            0 => {
                drop(own);
                data = format!("{step} again");
                own = register(&path, &data);
            }
            1 => {
                drop(common);
                common = register(COMMON, &path);
            }
            _ => {
                // Of several calls the last one counts, also if it ends without an answer.
                data = step.to_string();
                let write = own.set_data(data.clone());
                let _ = timeout(Duration::from_millis(rng.between(0, plan.timeout)), write).await;
            }
        }
    }
    Client { pool, own, common, data }
}

fn manager<'a>(pool: &'a ConnectionPool, path: &str) -> &'a ConnectionManager {
    pool.for_path(path)
}

async fn judge(world: &World, oracle: &Oracle, clients: Vec<Client>) {
    let patience = Duration::from_millis(world.plan().patience());
    becomes(world, oracle, patience, || wrong(world, &clients)).await;
    let (mut pools, mut ended) = (Vec::new(), Vec::new());
    for Client { pool, own, common, .. } in clients {
        pools.push(pool);
        ended.push((own.release(), common));
    }
    for (released, common) in ended {
        // After a create without an answer, the second search for its node takes longer than a call.
        match released.await {
            Ok(()) => {}
            Err(Error::Unknown { cause, .. }) if cause.starts_with("not confirmed within") => {}
            Err(error) => oracle.breach(world, format!("a release in peace: {error}")),
        }
        drop(common);
    }
    becomes(world, oracle, patience, || {
        let nodes =
            world.machine(|machine| machine.tree().node("/registered").map(|node| node.children.clone()));
        nodes.filter(|nodes| !nodes.is_empty()).map(|nodes| format!("{nodes:?} are left"))
    })
    .await;
    drop(pools);
}

/// What is not as it has to be in the end.
fn wrong(world: &World, clients: &[Client]) -> Option<String> {
    let node = |path: &str| {
        world.machine(|machine| {
            let node = machine.tree().node(path)?;
            let data = node.data.as_ref().map(|data| String::from_utf8_lossy(data).into_owned());
            Some((node.stat(), data.unwrap_or_default()))
        })
    };
    // Such nodes look right, and end with their session.
    if let Some(session) = world.unsettled_session() {
        return Some(format!("session {session:#x} has nodes, and its process may not know of its end"));
    }
    for client in clients {
        let (path, state) = (client.own.path(), client.own.state());
        let found = node(path.as_str());
        let is_right = found.as_ref().is_some_and(|(stat, data)| {
            state == PresenceState::Registered { czxid: stat.czxid } && *data == client.data
        });
        if !is_right {
            return Some(format!("{path} is {found:?} in state {state}, and should have {:?}", client.data));
        }
    }
    let Some((stat, _)) = node(COMMON) else { return Some(format!("no process has {COMMON}")) };
    let states: Vec<PresenceState> = clients.iter().map(|client| client.common.state()).collect();
    let registered = states.iter().filter(|state| state.is_registered()).count();
    let knows = |state: &PresenceState| match *state {
        PresenceState::Registered { czxid } => czxid == stat.czxid,
        PresenceState::Conflict { owner_session } => owner_session == stat.ephemeral_owner,
        _ => false,
    };
    let is_right = registered == 1 && states.iter().all(knows);
    (!is_right)
        .then(|| format!("{COMMON} belongs to {:#x}, and the states are {states:?}", stat.ephemeral_owner))
}
