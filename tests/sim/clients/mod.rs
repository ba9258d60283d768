//! The client processes: some tasks each, which take locks, work under them, and give them back or up.

mod cancelled;
mod worker;

use std::sync::Arc;
use std::time::Duration;

use lockkeeper::{ConnectionManager, Owner, RetryPolicy};

use self::worker::Worker;
use crate::dice::Dice;
use crate::host::{Process, SimulatedHost};
use crate::oracle::Oracle;
use crate::wire::Network;
use crate::world::World;

/// Runs one process until its workers have had their last lock; returns its manager.
pub(crate) async fn run(
    world: World,
    oracle: Oracle,
    process: Arc<Process>,
    mut dice: Dice,
) -> ConnectionManager {
    let plan = world.plan();
    let manager = connect(&world, &process, &mut dice).await;
    let workers: Vec<_> = (0..plan.workers)
        .map(|number| {
            let name = format!("p{}.{number}", process.number);
            let worker = Worker {
                owner: Owner::new(&name),
                name,
                world: world.clone(),
                oracle: oracle.clone(),
                process: Arc::clone(&process),
                manager: manager.clone(),
                plan: plan.clone(),
                dice: dice.fork(),
            };
            process.run(worker.work())
        })
        .collect();
    for worker in workers {
        if let Err(panic) = worker.await {
            oracle.breach(&world, format!("a worker ended: {panic}"));
        }
    }
    manager
}

async fn connect(world: &World, process: &Arc<Process>, dice: &mut Dice) -> ConnectionManager {
    let plan = world.plan();
    let milliseconds = Duration::from_millis;
    let pause = milliseconds(dice.between(10, 200));
    ConnectionManager::builder("simulated:1")
        .session_timeout(milliseconds(plan.timeout))
        .tick_time(milliseconds(plan.tick))
        .keep_confirmed(milliseconds(dice.pick(&[0, plan.timeout / 2, 60_000])))
        .connect_deadline(Duration::from_secs(86_400))
        .retry(RetryPolicy::exponential(pause, pause * 8))
        .connect_over(
            Arc::new(Network { world: world.clone(), process: Arc::clone(process) }),
            Arc::new(SimulatedHost(Arc::clone(process))),
        )
        .await
        .expect("a connection")
}
