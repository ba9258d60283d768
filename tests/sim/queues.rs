//! Work queues under the same faults: each process puts items, and all of them take them.
//!
//! While faults strike, the processes put, take, give up and do items, and drop their calls. When all is
//! healed, they work off what is left. Then each item whose put was answered was done once, each one that was
//! refused never, and no item is left.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lockkeeper::error::{Outcome, Refusal};
use lockkeeper::work_queue::WorkItem;
use lockkeeper::znodes::CreateMode;
use lockkeeper::{ConnectionManager, ConnectionPool, Error, WorkQueue};
use parking_lot::Mutex;
use tokio::time::{sleep, timeout};

use crate::clients::connect;
use crate::environment::Process;
use crate::fault::Fault;
use crate::lost;
use crate::oracle::Oracle;
use crate::plan::Plan;
use crate::rng::Rng;
use crate::seeds::each;
use crate::world::World;

/// The default number of seeds: some seconds.
const SEEDS: u64 = 300;

const QUEUE: &str = "/queue";

/// One node for each time that an item was done.
const RECEIPTS: &str = "/receipts";

/// Whose nodes the queue of a seed has.
#[derive(Clone, Copy)]
enum Layout {
    /// With directories for so many items each.
    Own(u32),
    Curator,
    Kazoo,
}

impl Layout {
    fn of(seed: u64) -> Self {
        match seed % 3 {
            0 => Self::Own([1, 2, 5, 10_000][usize::try_from(seed / 3 % 4).unwrap()]),
            1 => Self::Curator,
            _ => Self::Kazoo,
        }
    }

    fn queue(self, manager: &ConnectionManager) -> WorkQueue<String> {
        match self {
            Self::Own(size) => WorkQueue::new(manager, QUEUE).unwrap().with_shard_size(size),
            Self::Curator => WorkQueue::in_curator_layout(manager, self.items(), QUEUE).unwrap(),
            Self::Kazoo => WorkQueue::in_kazoo_layout(manager, QUEUE).unwrap(),
        }
    }

    /// The directory of the items, or the first one.
    fn items(self) -> &'static str {
        match self {
            Self::Own(_) => "/queue/items",
            Self::Curator => "/items",
            Self::Kazoo => "/queue/entries",
        }
    }

    /// The directories of the items, if these are the children of the queue's path.
    fn directories(self, children: &[String]) -> Vec<String> {
        match self {
            Self::Own(_) => {
                let names = children.iter().filter(|name| name.starts_with("items"));
                let mut paths: Vec<String> = names.map(|name| format!("{QUEUE}/{name}")).collect();
                paths.sort();
                paths
            }
            _ => vec![self.items().to_owned()],
        }
    }
}

/// What is known of the put of each value; `None` without an answer.
type Puts = Arc<Mutex<BTreeMap<String, Option<Outcome>>>>;

#[test]
fn every_seed_keeps_work_queues() {
    each(SEEDS, "queues", simulate);
}

async fn simulate(seed: u64, is_traced: bool) -> (Vec<String>, Vec<String>) {
    let mut rng = Rng::new(seed);
    let mut plan = Plan::draw(&mut rng);
    // These concern the numbers of contenders, other recipes, and nodes that look like those of a worker.
    let is_kept = |fault: &Fault| !matches!(fault, Fault::CountAhead | Fault::CuratorsLease | Fault::Restore);
    plan.faults.retain(is_kept);
    plan.first_sequence = 0;
    plan.room = None;
    let world = World::new(plan.clone(), rng.fork());
    if is_traced {
        world.keep_trace();
    }
    lost::listen(&world);
    let (layout, oracle, puts) = (Layout::of(seed), Oracle::default(), Puts::default());
    let clients: Vec<_> = (0..plan.processes)
        .map(|number| {
            let process = Process::new(number, plan.drift, rng.fork());
            world.add(&process);
            let (world, oracle, puts) = (world.clone(), oracle.clone(), Arc::clone(&puts));
            let client = Client { world, layout, oracle, puts, process: Arc::clone(&process) };
            process.run(client.live(rng.fork()))
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
        // Those of the processes that have not crashed are kept until all is judged.
        Ok(_pools) => judge(&world, layout, &oracle, &puts.lock()),
    }
    running.abort();
    lost::end();
    (oracle.broken(), world.trace())
}

/// One process, which puts and takes.
struct Client {
    world: World,
    layout: Layout,
    oracle: Oracle,
    puts: Puts,
    process: Arc<Process>,
}

impl Client {
    /// Puts and takes until all is healed, and works off what is left.
    async fn live(self, mut rng: Rng) -> ConnectionPool {
        let (plan, number) = (self.world.plan(), self.process.number);
        let pool = connect(&self.world, &self.process, &mut rng).await;
        let manager = pool.for_path(QUEUE);
        let queue = self.layout.queue(manager);
        let znodes = manager.znodes();
        let receipts = || znodes.create(RECEIPTS, b"", CreateMode::Persistent);
        let exists = |error: &Error| matches!(error, Error::Refused { refusal: Refusal::NodeExists, .. });
        while receipts().await.is_err_and(|error| !exists(&error)) {
            sleep(Duration::from_millis(plan.timeout / 10)).await;
        }
        for step in 1_u32.. {
            // A process that is paused wakes up late.
            sleep(Duration::from_millis(rng.between(1, plan.timeout / 4))).await;
            if self.world.is_healing() {
                break;
            }
            let limit = if rng.percent(20) { rng.between(0, plan.latency * 6) } else { plan.timeout * 2 };
            let limit = Duration::from_millis(limit);
            match rng.index(3) {
                0 => {
                    let values =
                        (0..=rng.index(3)).map(|place| format!("p{number}x{step}x{place}")).collect();
                    let _ = timeout(limit, self.put(&queue, values)).await;
                }
                _ => {
                    let gives_up = rng.percent(30);
                    let _ = timeout(limit, self.take(&queue, gives_up)).await;
                }
            }
        }
        while !self.is_empty(manager, &queue).await {
            sleep(Duration::from_millis(plan.timeout / 10)).await;
        }
        pool
    }

    async fn put(&self, queue: &WorkQueue<String>, values: Vec<String>) {
        self.puts.lock().extend(values.iter().map(|value| (value.clone(), None)));
        let put = queue.put_all(&values).await;
        self.world.note(|| format!("p{} has put {values:?}: {put:?}", self.process.number));
        let outcome = put.map_or_else(|error| error.outcome(), |()| Outcome::Applied);
        self.puts.lock().extend(values.into_iter().map(|value| (value, Some(outcome))));
    }

    async fn take(&self, queue: &WorkQueue<String>, gives_up: bool) {
        let Some(Some(item)) = self.patiently(queue.try_take().await) else { return };
        sleep(Duration::from_millis(self.world.plan().latency)).await;
        match gives_up {
            true => drop(item),
            false => drop(self.patiently(done(item).await)),
        }
    }

    /// Works off the items that are free. Returns whether none is left.
    async fn is_empty(&self, manager: &ConnectionManager, queue: &WorkQueue<String>) -> bool {
        loop {
            match self.patiently(queue.try_take().await) {
                Some(Some(item)) => drop(self.patiently(done(item).await)),
                Some(None) => break,
                None => return false,
            }
        }
        let Some(children) = self.patiently(manager.znodes().children(QUEUE).await) else { return false };
        for directory in self.layout.directories(&children.unwrap_or_default()) {
            match self.patiently(manager.znodes().children(directory).await) {
                Some(left) if left.as_ref().is_none_or(Vec::is_empty) => {}
                _ => return false,
            }
        }
        true
    }

    /// Reports errors that no fault explains.
    fn patiently<T>(&self, answer: Result<T, Error>) -> Option<T> {
        match answer {
            Ok(answer) => Some(answer),
            Err(Error::Config(error)) => {
                self.oracle.breach(&self.world, format!("queue: {error}"));
                None
            }
            Err(error) => {
                self.world.note(|| format!("p{}: {error}", self.process.number));
                None
            }
        }
    }
}

async fn done(item: WorkItem<String>) -> Result<(), Error> {
    let receipt = format!("{RECEIPTS}/{}-", item.value());
    item.done_with(|txn| txn.create_sequential(receipt, b"")).await
}

fn judge(world: &World, layout: Layout, oracle: &Oracle, puts: &BTreeMap<String, Option<Outcome>>) {
    let names = |path: &str| {
        world
            .machine(|machine| machine.tree().node(path).map(|node| node.children.clone()))
            .unwrap_or_default()
    };
    let directories = layout.directories(&names(QUEUE).into_iter().collect::<Vec<_>>());
    let items: Vec<_> = directories.iter().flat_map(|path| names(path)).collect();
    if !items.is_empty() {
        oracle.breach(world, format!("queue: the items {items:?} are left"));
    }
    if let (Layout::Own(_), Some((last, others))) = (layout, directories.split_last()) {
        let is_open = |path: &String| {
            world.machine(|machine| machine.tree().node(path).is_some_and(|node| node.stat().version == 0))
        };
        if !is_open(last) || others.iter().any(is_open) {
            oracle.breach(world, format!("queue: not the last alone of {directories:?} is open"));
        }
    }
    let mut done = BTreeMap::<String, u32>::new();
    for receipt in names(RECEIPTS) {
        *done.entry(receipt.rsplit_once('-').unwrap().0.to_owned()).or_default() += 1;
    }
    for (value, outcome) in puts {
        let count = done.remove(value).unwrap_or_default();
        let is_right = match outcome {
            Some(Outcome::Applied) => count == 1,
            Some(Outcome::NotApplied) => count == 0,
            Some(Outcome::Unknown) | None => count <= 1,
        };
        if !is_right {
            oracle.breach(world, format!("queue: {value}, whose put is {outcome:?}, was done {count} times"));
        }
    }
    if !done.is_empty() {
        oracle.breach(world, format!("queue: {done:?} were done and never put"));
    }
}
