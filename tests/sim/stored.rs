//! Stored values under the same faults: a table, latches, and migrations, of all processes together.
//!
//! While faults strike, the processes append to an entry, insert and remove another one, count a latch down
//! and do the steps of their migrations, and drop their calls. When all is healed, they end their migrations,
//! open a second latch together and wait for it. Then each change whose answer came was applied once, each
//! one that was refused never, each step was done once, and the view of each process is the table.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lockkeeper::error::{MigrationError, Outcome, Refusal};
use lockkeeper::table::{Plain, Removal, TableView};
use lockkeeper::znodes::CreateMode;
use lockkeeper::{ConnectionManager, ConnectionPool, CountDownLatch, Error, Migrations, Table};
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

/// One session of a pool has all of it.
const ROOT: &str = "/stored";
const TABLE: &str = "/stored/table";
const LATCH: &str = "/stored/latch";
const GATE: &str = "/stored/gate";
const MIGRATIONS: &str = "/stored/migrations";

/// One node for each time that a step was done.
const RECEIPTS: &str = "/receipts";

/// More than all processes count.
const COUNT: u32 = 10_000;

const STEPS: [&str; 3] = ["one", "two", "three"];

/// What a call changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Call {
    Append,
    Insert,
    Remove,
    Count,
}

/// What is known of the calls, each by a name of its own; `None` without an answer. And every text that an
/// append has returned.
#[derive(Default)]
struct Known {
    calls: BTreeMap<(Call, String), Option<Outcome>>,
    shown: Vec<String>,
}

impl Known {
    /// The fewest and the most calls of this kind that were applied.
    fn applied(&self, call: Call) -> (i64, i64) {
        let of_kind = || self.calls.iter().filter(|((kind, _), _)| *kind == call).map(|(_, outcome)| outcome);
        let sure = of_kind().filter(|outcome| **outcome == Some(Outcome::Applied)).count();
        let possible = of_kind().filter(|outcome| **outcome != Some(Outcome::NotApplied)).count();
        (i64::try_from(sure).unwrap(), i64::try_from(possible).unwrap())
    }
}

#[test]
fn every_seed_keeps_stored_values() {
    each(SEEDS, "stored", simulate);
}

async fn simulate(seed: u64, is_traced: bool) -> (Vec<String>, Vec<String>) {
    let mut rng = Rng::new(seed);
    let mut plan = Plan::draw(&mut rng);
    // These concern the numbers of contenders, other recipes, and nodes that look like those of a contender.
    let is_kept = |fault: &Fault| !matches!(fault, Fault::CountAhead | Fault::CuratorsLease | Fault::Restore);
    plan.faults.retain(is_kept);
    plan.first_sequence = 0;
    plan.room = None;
    let world = World::new(plan.clone(), rng.fork());
    if is_traced {
        world.keep_trace();
    }
    lost::listen(&world);
    let (oracle, known) = (Oracle::default(), Arc::<Mutex<Known>>::default());
    let clients: Vec<_> = (0..plan.processes)
        .map(|number| {
            let process = Process::new(number, plan.drift, rng.fork());
            world.add(&process);
            let (world, oracle, known) = (world.clone(), oracle.clone(), Arc::clone(&known));
            let client = Client { world, oracle, known, process: Arc::clone(&process) };
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
        Ok(alive) => {
            judge(&world, &oracle, &known.lock());
            let views = alive.into_iter().filter_map(Result::ok);
            for (pool, view) in views {
                judge_view(&world, &oracle, &view, patience).await;
                drop((pool, view));
            }
        }
    }
    running.abort();
    lost::end();
    (oracle.broken(), world.trace())
}

/// What a process calls.
struct Recipes {
    table: Table<String>,
    latch: CountDownLatch,
    gate: CountDownLatch,
    migrations: Migrations,
}

impl Recipes {
    fn new(manager: &ConnectionManager, processes: usize) -> Self {
        let mut migrations = Migrations::new(manager, MIGRATIONS).unwrap();
        for step in STEPS {
            migrations = migrations.step(step, 1, move |manager| async move {
                Ok(manager.txn().create_sequential(format!("{RECEIPTS}/{step}-"), b""))
            });
        }
        Self {
            table: Table::with_codec(manager, TABLE, Plain).unwrap(),
            latch: CountDownLatch::new(manager, LATCH, COUNT).unwrap(),
            gate: CountDownLatch::new(manager, GATE, u32::try_from(processes).unwrap() + 2).unwrap(),
            migrations,
        }
    }
}

/// One process.
struct Client {
    world: World,
    oracle: Oracle,
    known: Arc<Mutex<Known>>,
    process: Arc<Process>,
}

impl Client {
    /// Makes calls until all is healed, and ends together with the others.
    async fn live(self, mut rng: Rng) -> (ConnectionPool, TableView<String>) {
        let (plan, number) = (self.world.plan(), self.process.number);
        let pool = connect(&self.world, &self.process, &mut rng).await;
        let manager = pool.for_path(ROOT);
        let recipes = Recipes::new(manager, plan.processes);
        let view = recipes.table.view().unwrap();
        let pause = Duration::from_millis(plan.timeout / 10);
        let znodes = manager.znodes();
        let receipts = || znodes.create(RECEIPTS, b"", CreateMode::Persistent);
        let exists = |error: &Error| matches!(error, Error::Refused { refusal: Refusal::NodeExists, .. });
        while receipts().await.is_err_and(|error| !exists(&error)) {
            sleep(pause).await;
        }
        for step in 1_u32.. {
            // A process that is paused wakes up late.
            sleep(Duration::from_millis(rng.between(1, plan.timeout / 4))).await;
            if self.world.is_healing() {
                break;
            }
            let limit = if rng.percent(20) { rng.between(0, plan.latency * 6) } else { plan.timeout * 2 };
            let limit = Duration::from_millis(limit);
            let name = format!("p{number}x{step}");
            let call = match rng.index(8) {
                0..3 => Call::Append,
                3 => Call::Insert,
                4 => Call::Remove,
                5 | 6 => Call::Count,
                _ => {
                    let _ = timeout(limit, self.migrate(&recipes)).await;
                    continue;
                }
            };
            let _ = timeout(limit, self.call(&recipes, call, name)).await;
        }
        while !self.migrate(&recipes).await {
            sleep(pause).await;
        }
        while self.patiently(recipes.gate.count_down().await) != Some(0) {
            sleep(pause).await;
        }
        while self.patiently(recipes.gate.wait().await).is_none() {
            sleep(pause).await;
        }
        (pool, view)
    }

    /// Whether all steps are done.
    async fn migrate(&self, recipes: &Recipes) -> bool {
        if self.patiently(recipes.migrations.run().await).is_none() {
            return false;
        }
        let done = children(&self.world, RECEIPTS);
        if done.len() < STEPS.len() {
            self.oracle.breach(&self.world, format!("migrations: only {done:?} is done at the end of a run"));
        }
        true
    }

    async fn call(&self, recipes: &Recipes, call: Call, name: String) {
        self.known.lock().calls.insert((call, name.clone()), None);
        let answer = match call {
            Call::Append => self.append(recipes, &name).await,
            Call::Insert => recipes.table.insert("flag", name.clone()).await.map(|set| set.is_set()),
            Call::Remove => {
                recipes.table.remove("flag", None).await.map(|removal| removal == Removal::Removed)
            }
            Call::Count => recipes.latch.count_down().await.map(|_| true),
        };
        self.world.note(|| format!("p{}: {call:?} {name}: {answer:?}", self.process.number));
        let outcome = match &answer {
            Ok(true) => Outcome::Applied,
            Ok(false) => Outcome::NotApplied,
            Err(error) => error.outcome(),
        };
        let _ = self.patiently(answer);
        self.known.lock().calls.insert((call, name), Some(outcome));
    }

    async fn append(&self, recipes: &Recipes, name: &str) -> Result<bool, Error> {
        let word = name.to_owned();
        let append = move |before: Option<&String>| {
            Some(format!("{}{word} ", before.map(String::as_str).unwrap_or_default()))
        };
        let entry = recipes.table.update("words", append).await?;
        self.known.lock().shown.extend(entry.map(|entry| entry.value));
        Ok(true)
    }

    /// Reports errors that no fault explains.
    fn patiently<T>(&self, answer: Result<T, Error>) -> Option<T> {
        match answer {
            Ok(answer) => Some(answer),
            Err(error @ (Error::Config(_) | Error::Recipe(_))) if !is_of_a_step(&error) => {
                self.oracle.breach(&self.world, format!("stored: {error}"));
                None
            }
            Err(error) => {
                self.world.note(|| format!("p{}: {error}", self.process.number));
                None
            }
        }
    }
}

/// Whether a step had an error of the servers.
fn is_of_a_step(error: &Error) -> bool {
    matches!(error.recipe(), Some(MigrationError::Failed { .. }))
}

fn children(world: &World, path: &str) -> Vec<String> {
    let names = world.machine(|machine| machine.tree().node(path).map(|node| node.children.clone()));
    names.unwrap_or_default().into_iter().collect()
}

/// The data of a node as a text; none if the node does not exist.
fn text(world: &World, path: &str) -> Option<String> {
    let data = world.machine(|machine| machine.tree().node(path).and_then(|node| node.data.clone()));
    data.map(|data| String::from_utf8(data.to_vec()).unwrap())
}

fn judge(world: &World, oracle: &Oracle, known: &Known) {
    let words = text(world, &format!("{TABLE}/words")).unwrap_or_default();
    if let Some(shown) = known.shown.iter().find(|shown| !words.starts_with(*shown)) {
        oracle.breach(world, format!("table: {shown:?} was the entry, and it is {words:?}"));
    }
    let mut counts = BTreeMap::<&str, u32>::new();
    for word in words.split_whitespace() {
        *counts.entry(word).or_default() += 1;
    }
    for ((_, name), outcome) in known.calls.iter().filter(|((call, _), _)| *call == Call::Append) {
        let count = counts.remove(name.as_str()).unwrap_or_default();
        let is_right = match outcome {
            Some(Outcome::Applied) => count == 1,
            Some(Outcome::NotApplied) => count == 0,
            Some(Outcome::Unknown) | None => count <= 1,
        };
        if !is_right {
            oracle.breach(world, format!("table: {name}, which is {outcome:?}, is there {count} times"));
        }
    }
    let flag = text(world, &format!("{TABLE}/flag")).filter(|data| data != "removed\n");
    let (inserted, removed) = (known.applied(Call::Insert), known.applied(Call::Remove));
    let present = i64::from(flag.is_some());
    if present < inserted.0 - removed.1 || present > inserted.1 - removed.0 {
        oracle
            .breach(world, format!("table: {inserted:?} inserts, {removed:?} removes, and {flag:?} is left"));
    }
    let left = text(world, LATCH)
        .map_or(COUNT, |data| data.split_once(' ').expect("a count and a generation").0.parse().unwrap());
    let (least, most) = known.applied(Call::Count);
    let counted = i64::from(COUNT) - i64::from(left);
    if counted < least || counted > most {
        oracle.breach(world, format!("latch: {counted} are counted, of {least} to {most}"));
    }
    let mut done = children(world, RECEIPTS);
    done.iter_mut().for_each(|name| name.truncate(name.rfind('-').unwrap()));
    done.sort();
    let mut expected = STEPS;
    expected.sort_unstable();
    if done != expected {
        oracle.breach(world, format!("migrations: done are {done:?}"));
    }
}

/// The view of a process shows the table when it is synced.
async fn judge_view(world: &World, oracle: &Oracle, view: &TableView<String>, patience: Duration) {
    let shown = match timeout(patience, view.sync()).await {
        Ok(Ok(shown)) => shown,
        Ok(Err(error)) => return oracle.breach(world, format!("view: {error}")),
        Err(_) => return oracle.breach(world, "liveness: a view is not synced".to_owned()),
    };
    for key in ["words", "flag"] {
        let stored = text(world, &format!("{TABLE}/{key}")).filter(|data| data != "removed\n");
        let seen = shown.get(key).unwrap().cloned();
        if seen != stored {
            oracle.breach(world, format!("view: {key} is {stored:?}, and is shown as {seen:?}"));
        }
    }
}
