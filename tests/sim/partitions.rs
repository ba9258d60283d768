//! Partitions under the same faults: each process is a member, and all share the items.
//!
//! While faults strike, members join and leave, guards are dropped, and items are added and removed. The
//! oracle judges the guards as those of any lock. When all is healed, each item is held by the member to
//! which the hash gives it, and by no other. When all members have left, no node is left.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use lockkeeper::Partition;
use lockkeeper::partition::{AssignedItem, PartitionMember};
use lockkeeper_test_recipes::Granted;
use parking_lot::Mutex;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

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
const SEEDS: u64 = 150;

/// What makes the path so long that a small budget has room for a member with all items, and for one node
/// more.
const PADDING: usize = 38;

fn path(plan: &Plan) -> String {
    format!("/shards{}", "-".repeat(plan.room.map_or(0, |_| PADDING)))
}

const ITEMS: usize = 6;

/// The guards that the processes work under, by the number of the process and the name of the item.
type Guards = Arc<Mutex<BTreeMap<(usize, String), Arc<Granted>>>>;

#[test]
fn every_seed_keeps_partitions() {
    each(SEEDS, "partitions", simulate);
}

/// One process, which is a member.
#[derive(Clone)]
struct Client {
    world: World,
    oracle: Oracle,
    process: Arc<Process>,
    guards: Guards,
    /// Everything was judged: the member leaves.
    stop: CancellationToken,
}

async fn simulate(seed: u64, is_traced: bool) -> (Vec<String>, Vec<String>) {
    let mut rng = Rng::new(seed);
    let mut plan = Plan::draw(&mut rng);
    // No semaphore is here.
    plan.faults.retain(|fault| *fault != Fault::CuratorsLease);
    let world = World::new(plan.clone(), rng.fork());
    if is_traced {
        world.keep_trace();
    }
    lost::listen(&world);
    let (oracle, guards, stop) = (Oracle::default(), Guards::default(), CancellationToken::new());
    let (mut processes, mut clients) = (Vec::new(), Vec::new());
    for number in 0..plan.processes {
        let process = Process::new(number, plan.drift, rng.fork());
        world.add(&process);
        let (world, oracle) = (world.clone(), oracle.clone());
        let (guards, stop) = (Arc::clone(&guards), stop.clone());
        let client = Client { world, oracle, process: Arc::clone(&process), guards, stop };
        clients.push(process.run(client.live(rng.fork())));
        processes.push(process);
    }
    let running = {
        let (world, oracle) = (world.clone(), oracle.clone());
        tokio::spawn(async move { world.run(&oracle).await })
    };
    // The passing of simulated time is the subject: faults strike for as long as the safety phase lasts.
    sleep(Duration::from_millis(plan.safety)).await;
    world.heal();
    let patience = Duration::from_millis(plan.patience());
    becomes(&world, &oracle, patience, || misplaced(&world, &processes, &guards)).await;
    stop.cancel();
    if timeout(patience, futures::future::join_all(clients)).await.is_err() {
        oracle.breach(&world, "liveness: a member has not left".to_owned());
    }
    // A crashed process still has its own.
    guards.lock().clear();
    becomes(&world, &oracle, patience, || left(&world)).await;
    running.abort();
    oracle.check_log(&world);
    lost::end();
    (oracle.broken(), world.trace())
}

fn id(process: usize) -> String {
    format!("p{process}")
}

fn items() -> impl Iterator<Item = String> {
    (0..ITEMS).map(|number| format!("item-{number}"))
}

/// The items that are not with the member that the hash names, or with another as well.
fn misplaced(world: &World, processes: &[Arc<Process>], guards: &Guards) -> Option<String> {
    let directory = format!("{}/items", path(&world.plan()));
    let items = world.machine(|machine| {
        machine.tree().node(&directory).map(|node| node.children.clone()).unwrap_or_default()
    });
    let alive: Vec<String> =
        processes.iter().filter(|process| !process.is_crashed()).map(|process| id(process.number)).collect();
    let owner = |item: &str| Partition::owner_among(item, alive.iter().map(String::as_str));
    let expected: BTreeMap<String, Vec<String>> = items
        .iter()
        .map(|item| (item.clone(), owner(item).map(str::to_owned).into_iter().collect()))
        .collect();
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for ((process, item), guard) in guards.lock().iter() {
        if !processes[*process].is_crashed() && guard.is_valid() {
            found.entry(item.clone()).or_default().push(id(*process));
        }
    }
    (items.is_empty() || found != expected)
        .then(|| format!("the items are with {found:?}, and belong to {expected:?}"))
}

/// The ephemeral nodes that are left.
fn left(world: &World) -> Option<String> {
    let left: Vec<String> = world.machine(|machine| {
        let of = |session: &i64| machine.tree().ephemerals(*session).map(str::to_owned).collect::<Vec<_>>();
        machine.sessions().iter().flat_map(of).collect()
    });
    (!left.is_empty()).then(|| format!("{left:?} are left"))
}

impl Client {
    /// Joins and leaves until all is healed, and is a member then until it is told to stop.
    async fn live(self, mut rng: Rng) {
        let timeout = self.world.plan().timeout;
        let pool = connect(&self.world, &self.process, &mut rng).await;
        let path = path(&self.world.plan());
        let partition = Partition::new(pool.for_path(&path), path.as_str()).unwrap();
        let changing = self.change_items(&partition, rng.fork());
        let sharing = async {
            while !self.stop.is_cancelled() {
                let span = Duration::from_millis(rng.between(1, timeout * 3));
                let until = async {
                    sleep(span).await;
                    if self.world.is_healing() {
                        self.stop.cancelled().await;
                    }
                };
                self.share(partition.join(&id(self.process.number)).unwrap(), until, rng.fork()).await;
            }
        };
        tokio::join!(changing, sharing);
    }

    /// Adds and removes items until all is healed, and adds all then.
    async fn change_items(&self, partition: &Partition, mut rng: Rng) {
        let limit = self.world.plan().timeout;
        while !self.world.is_healing() {
            // Any result is right while faults strike.
            let item = format!("item-{}", rng.index(ITEMS));
            let patience = Duration::from_millis(rng.between(1, limit));
            let _ = match rng.index(3) {
                0 => timeout(patience, partition.remove([item])).await,
                _ => timeout(patience, partition.add([item])).await,
            };
            sleep(Duration::from_millis(rng.between(1, limit))).await;
        }
        while partition.add(items()).await.is_err() {
            sleep(Duration::from_millis(limit / 10)).await;
        }
    }

    /// Works on the items of a member, and ends it by a drop or in order.
    async fn share(&self, mut member: PartitionMember, until: impl Future<Output = ()>, mut rng: Rng) {
        let mut held = FuturesUnordered::new();
        let mut until = pin!(until);
        loop {
            tokio::select! {
                biased;
                () = &mut until => break,
                item = member.next() => match item {
                    Some(item) => held.push(self.hold(item, rng.fork())),
                    None => break,
                },
                Some(()) = held.next() => {}
            }
        }
        if !self.stop.is_cancelled() && rng.percent(40) {
            drop(member);
        } else {
            let mut leave = pin!(member.leave());
            // Its result is not judged: the session may end at any time, and what is left is judged below.
            while tokio::select! {
                biased;
                _ = &mut leave => false,
                Some(()) = held.next() => true,
            } {}
        }
        while held.next().await.is_some() {}
    }

    /// Works on an item until it is asked for or lost, or for a while.
    async fn hold(&self, item: AssignedItem, mut rng: Rng) {
        let key = (self.process.number, item.item().to_owned());
        let grant: Arc<Granted> = Arc::new(Box::new(item));
        let entry = self.oracle.granted(&self.world, &self.process, &grant);
        self.guards.lock().insert(key.clone(), Arc::clone(&grant));
        let timeout = self.world.plan().timeout;
        let is_bored = !self.world.is_healing() && rng.percent(20);
        let (span, rest) = (rng.between(1, timeout), rng.between(0, timeout / 20));
        let work = async {
            tokio::select! {
                biased;
                () = grant.release_requested() => {}
                () = sleep(Duration::from_millis(span)), if is_bored => {}
            }
            sleep(Duration::from_millis(rest)).await;
        };
        let is_lost = tokio::select! {
            biased;
            () = grant.lost() => true,
            () = work => false,
        };
        if is_lost {
            self.oracle.lost(&entry);
            // The guard is kept for a while, as during a cleanup.
            sleep(Duration::from_millis(rest)).await;
        }
        // From here on the process claims nothing.
        drop(entry);
        self.guards.lock().remove(&key);
        let claims = grant.claims();
        let Ok(grant) = Arc::try_unwrap(grant) else {
            return self.oracle.breach(&self.world, "the record kept a guard".to_owned());
        };
        if rng.percent(30) {
            drop(grant);
        } else if grant.release().await.is_ok() {
            self.oracle.released(&self.world, &claims);
        }
    }
}
