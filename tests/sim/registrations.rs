//! Registrations under the same faults: each process has a node of its own, and all want one more.
//!
//! While faults strike, the processes write data, drop registrations and make them again. All the while, a
//! node is claimed by one process, and a process does not return to an older node. When all is healed, each
//! process that has not crashed has its own node with its last data, one of them has the common node, and the
//! others know its owner. When all registrations have ended, no node is left.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lockkeeper::error::Refusal;
use lockkeeper::presence::{OnDeletion, PresenceState};
use lockkeeper::znodes::Zxid;
use lockkeeper::{ConnectionManager, ConnectionPool, Error, Registration};
use parking_lot::Mutex;
use tokio::task::JoinError;
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

/// What makes the paths so long that a small budget has room for two nodes, and not for a third one.
const PADDING: usize = 380;

/// The path of the node with this name.
fn path(plan: &Plan, name: &str) -> String {
    format!("/registered/{name}{}", "-".repeat(plan.room.map_or(0, |_| PADDING)))
}

fn common_path(plan: &Plan) -> String {
    path(plan, "common")
}

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
    // These concern queues.
    let is_kept = |fault: &Fault| !matches!(fault, Fault::CountAhead | Fault::CuratorsLease);
    plan.faults.retain(is_kept);
    let world = World::new(plan.clone(), rng.fork());
    if is_traced {
        world.keep_trace();
    }
    lost::listen(&world);
    let (oracle, claims) = (Oracle::default(), Arc::default());
    let clients: Vec<_> = (0..plan.processes)
        .map(|number| {
            let process = Process::new(number, plan.drift, rng.fork());
            world.add(&process);
            let (world, oracle, claims) = (world.clone(), oracle.clone(), Arc::clone(&claims));
            let reader = ClaimReader { world, oracle, claims, process: Arc::clone(&process) };
            process.run(live(reader, rng.fork()))
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
        Ok(clients) => {
            // A process that has crashed has no registration.
            let has_crashed =
                |client: &Result<Client, JoinError>| client.as_ref().is_err_and(JoinError::is_cancelled);
            let alive = clients.into_iter().filter(|client| !has_crashed(client));
            judge(&world, &oracle, alive.map(Result::unwrap).collect()).await;
        }
    }
    running.abort();
    lost::end();
    (oracle.broken(), world.trace())
}

/// What the processes have claimed.
#[derive(Default)]
struct Claims {
    /// The process that claimed the node which this transaction created at this path.
    owners: BTreeMap<(String, i64), usize>,
    /// The last node that a process claimed at a path.
    last: BTreeMap<(usize, String), i64>,
}

impl Claims {
    /// A process claims a node. Returns what is wrong with that.
    fn add(&mut self, process: usize, path: &str, czxid: i64) -> Option<String> {
        let owner = *self.owners.entry((path.to_owned(), czxid)).or_insert(process);
        let last = self.last.insert((process, path.to_owned()), czxid).unwrap_or(czxid);
        if owner != process {
            return Some(format!(
                "process {process} claims {path} of {czxid:#x}, the node of process {owner}"
            ));
        }
        (last > czxid)
            .then(|| format!("process {process} claims {path} of {czxid:#x} after that of {last:#x}"))
    }
}

/// Reads every state of the registrations of a process.
struct ClaimReader {
    world: World,
    oracle: Oracle,
    claims: Arc<Mutex<Claims>>,
    process: Arc<Process>,
}

impl ClaimReader {
    /// No task of the process, so it also reads while the process is paused.
    fn follow(&self, registration: &Registration) {
        let (mut watch, path) = (registration.watch(), registration.path().to_string());
        let (world, oracle, claims) = (self.world.clone(), self.oracle.clone(), Arc::clone(&self.claims));
        let process = self.process.number;
        drop(tokio::spawn(async move {
            while let Ok(known) = watch.changed().await {
                if let PresenceState::Registered { czxid } = known {
                    let claimed = claims.lock().add(process, &path, czxid.get());
                    let unowned = || format!("process {process} claims {path}, which belongs to no session");
                    let unowned = world.is_restored(czxid.get()).then(unowned);
                    claimed.into_iter().chain(unowned).for_each(|wrong| oracle.breach(&world, wrong));
                }
                if known == PresenceState::Refused(Refusal::SessionFull) {
                    oracle.refused();
                }
            }
        }));
    }
}

/// Registers, writes and ends registrations until all is healed, and returns the last ones.
async fn live(reader: ClaimReader, mut rng: Rng) -> Client {
    let ClaimReader { world, process, .. } = &reader;
    let plan = world.plan();
    let pool = connect(world, process, &mut rng).await;
    let path_of = |name: &str| path(&plan, &format!("{name}{}", process.number));
    let (path, common_path) = (path_of("p"), common_path(&plan));
    let register = |path: &str, data: &str| {
        let manager = manager(&pool, path);
        let registration = Registration::register_with(manager, path, data, OnDeletion::Recreate).unwrap();
        reader.follow(&registration);
        registration
    };
    let (mut own, mut common) = (register(&path, "0"), register(&common_path, &path));
    let (mut data, mut extra) = ("0".to_owned(), None);
    for step in 1_u32.. {
        // A process that is paused wakes up late.
        sleep(Duration::from_millis(rng.between(1, plan.timeout / 2))).await;
        if world.is_healing() {
            break;
        }
        // Takes the room of another one, or gives it back.
        if plan.room.is_some() && rng.percent(40) {
            extra = match extra {
                None => Some(register(&path_of("extra"), "")),
                Some(_) => None,
            };
        }
        match rng.index(4) {
            0 => {
                drop(own);
                data = format!("{step} again");
                own = register(&path, &data);
            }
            1 => {
                drop(common);
                common = register(&common_path, &path);
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

fn manager(pool: &ConnectionPool, path: impl AsRef<str>) -> &ConnectionManager {
    pool.for_path(path)
}

async fn judge(world: &World, oracle: &Oracle, clients: Vec<Client>) {
    let patience = Duration::from_millis(world.plan().patience());
    // A process that was paused, or had no server, may not know yet that its session has ended.
    for Client { pool, own, common, .. } in &clients {
        for registration in [own, common] {
            let _ = manager(pool, registration.path()).znodes().read(registration.path()).await;
        }
    }
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
        let mut nodes = world.machine(|machine| {
            machine.tree().node("/registered").map(|node| node.children.clone()).unwrap_or_default()
        });
        nodes.retain(|name| world.has_node(&format!("/registered/{name}")));
        (!nodes.is_empty()).then(|| format!("{nodes:?} are left"))
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
            state == PresenceState::Registered { czxid: Zxid::new(stat.czxid) } && *data == client.data
        });
        if !is_right {
            return Some(format!("{path} is {found:?} in state {state}, and should have {:?}", client.data));
        }
    }
    let common = common_path(&world.plan());
    let Some((stat, _)) = node(&common) else { return Some(format!("no process has {common}")) };
    let states: Vec<PresenceState> = clients.iter().map(|client| client.common.state()).collect();
    let registered = states.iter().filter(|state| state.is_registered()).count();
    let knows = |state: &PresenceState| match *state {
        PresenceState::Registered { czxid } => czxid.get() == stat.czxid,
        PresenceState::Conflict { owner_session } => owner_session == stat.ephemeral_owner,
        _ => false,
    };
    let is_right = registered == 1 && states.iter().all(knows);
    (!is_right)
        .then(|| format!("{common} belongs to {:#x}, and the states are {states:?}", stat.ephemeral_owner))
}
