//! The client processes: some tasks each, which acquire locks, work under them, and release or drop them.

mod adder;
mod cancelled;
mod viewer;
mod worker;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lockkeeper::config::RetryPolicy;
use lockkeeper::error::Refusal;
use lockkeeper::{ConnectionManager, ConnectionPool, Error, Owner};
use lockkeeper_test_recipes::Target;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use self::adder::Adder;
use self::viewer::Viewer;
use self::worker::Worker;
use crate::environment::{Process, SimulatedHost};
use crate::fault::Fault;
use crate::locks::{Lock, shared_locks};
use crate::oracle::{NUMBER, Oracle};
use crate::plan::BUDGET;
use crate::rng::Rng;
use crate::wire::Network;
use crate::world::World;

/// Runs one process until its workers have had their last lock, and returns its managers. The process may
/// shut them down before, and continue with others.
pub(crate) async fn run(world: World, oracle: Oracle, process: Arc<Process>, mut rng: Rng) -> ConnectionPool {
    let plan = world.plan();
    loop {
        let pool = connect(&world, &process, &mut rng).await;
        let shared = shared_locks(&pool, &plan.locks, &mut rng);
        let is_closing = Arc::new(AtomicBool::new(false));
        let workers: Vec<_> = (0..plan.workers)
            .map(|number| {
                let name = format!("p{}.{number}", process.number);
                let worker = Worker {
                    owner: Owner::new(&name),
                    name,
                    world: world.clone(),
                    oracle: oracle.clone(),
                    process: Arc::clone(&process),
                    pool: pool.clone(),
                    shared: shared.clone(),
                    is_closing: Arc::clone(&is_closing),
                    plan: plan.clone(),
                    rng: rng.fork(),
                };
                process.run(worker.work())
            })
            .collect();
        let beside = run_beside(&world, &oracle, &process, &pool, &mut rng);
        for lock in &plan.locks {
            observe(&world, &oracle, &process, &pool, *lock);
        }
        // Only the workers have these handles: an idle node is deleted with the last of them.
        drop(shared);
        if plan.shuts_down && !world.is_healing() {
            sleep(Duration::from_millis(rng.between(1, plan.safety))).await;
            if !world.is_healing() {
                is_closing.store(true, Ordering::Relaxed);
                let limit = rng.percent(50).then(|| Duration::from_millis(rng.between(0, plan.timeout)));
                shut_down(&world, &oracle, &process, &pool, limit).await;
            }
        }
        for worker in workers.into_iter().chain(beside) {
            if let Err(panic) = worker.await {
                oracle.breach(&world, format!("a worker ended: {panic}"));
            }
        }
        if !is_closing.load(Ordering::Relaxed) {
            return pool;
        }
    }
}

/// Runs the tasks that follow and count, if the plan has them.
fn run_beside(
    world: &World,
    oracle: &Oracle,
    process: &Arc<Process>,
    pool: &ConnectionPool,
    rng: &mut Rng,
) -> Vec<JoinHandle<()>> {
    let (plan, mut tasks) = (world.plan(), Vec::new());
    if plan.views {
        let viewer = Viewer {
            name: format!("the viewer of p{}", process.number),
            world: world.clone(),
            oracle: oracle.clone(),
            manager: pool.for_path("/locks").clone(),
            rng: rng.fork(),
        };
        tasks.push(process.run(viewer.follow()));
    }
    if plan.counts {
        let adder = Adder {
            name: format!("the adder of p{}", process.number),
            world: world.clone(),
            oracle: oracle.clone(),
            manager: pool.for_path(NUMBER).clone(),
            rng: rng.fork(),
        };
        tasks.push(process.run(adder.add()));
    }
    tasks
}

/// Observes the holders of a lock that has observers, until all is healed.
fn observe(world: &World, oracle: &Oracle, process: &Arc<Process>, pool: &ConnectionPool, lock: Lock) {
    let path = lock.path();
    let target = Target::new(pool.for_path(&path), &path);
    let observer = format!("an observer of {path} in p{}", process.number);
    let mut earlier = 0;
    let seen = Box::new({
        let (world, oracle) = (world.clone(), oracle.clone());
        move |token| {
            oracle.observed(&world, &observer, earlier, token);
            earlier = token;
        }
    });
    let Some(observing) = lock.observe(target, seen) else { return };
    let (world, pause) = (world.clone(), Duration::from_millis(world.plan().timeout / 10));
    process.run(async move {
        // The passing of time is the subject: the observer ends when the faults do.
        let healed = async {
            while !world.is_healing() {
                sleep(pause).await;
            }
        };
        tokio::select! {
            biased;
            () = healed => {}
            () = observing => {}
        }
    });
}

/// Promise 6: after a successful shutdown no node is left. Within a limit, the shutdown waits for holders.
async fn shut_down(
    world: &World,
    oracle: &Oracle,
    process: &Process,
    pool: &ConnectionPool,
    limit: Option<Duration>,
) {
    world.note(|| format!("p{} shuts down within {limit:?}", process.number));
    let closed = match limit {
        Some(limit) => pool.shutdown_within(limit).await.map(drop),
        None => pool.shutdown().await,
    };
    world.note(|| format!("p{} has shut down: {closed:?}", process.number));
    let session = world.newest_session(process);
    let has_nodes =
        |session: i64| world.machine(|machine| machine.tree().ephemerals(session).next().is_some());
    // If a server swaps sessions, the closed session may have been another one.
    let is_ours = !world.plan().faults.contains(&Fault::Swap);
    if closed.is_ok() && is_ours && session.is_some_and(has_nodes) {
        oracle.breach(world, "promise 6: a shutdown has returned, and nodes of its session exist".to_owned());
    }
}

pub(crate) async fn connect(world: &World, process: &Arc<Process>, rng: &mut Rng) -> ConnectionPool {
    let plan = world.plan();
    let milliseconds = Duration::from_millis;
    let pause = milliseconds(rng.between(10, 200));
    let mut builder = ConnectionManager::builder("simulated:1");
    if plan.room.is_some() {
        builder = builder.node_bytes_max(BUDGET);
    }
    builder
        .session_timeout(milliseconds(plan.timeout))
        .tick_time(milliseconds(plan.tick))
        .lease_keep_alive(milliseconds(rng.pick(&[0, plan.timeout / 2, 60_000])))
        .connect_deadline(Duration::from_secs(86_400))
        .retry(RetryPolicy::exponential(pause, pause * 8))
        .connect_pool_over(
            plan.sessions,
            Arc::new(Network { world: world.clone(), process: Arc::clone(process) }),
            Arc::new(SimulatedHost(Arc::clone(process))),
        )
        .await
        .expect("a connection")
}

/// Whether a call was refused because the nodes of its session would exceed their budget. A recipe's own
/// error has that of the request as its cause.
pub(crate) fn is_full(error: &Error) -> bool {
    let mut causes = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
    causes.any(|cause| {
        let refused = cause.downcast_ref::<Error>();
        matches!(refused, Some(Error::Refused { refusal: Refusal::SessionFull, .. }))
    })
}
