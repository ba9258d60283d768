//! Workers that repeat an operation, and the measured part of what they do.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::Outcome;
use crate::counters::Meters;
use crate::measurements::{Lap, Measurements};

/// How long workers may take to come back when the time is over. Generous: a worker that takes longer is
/// stuck.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Does one operation after the other.
pub(crate) trait Worker: Send + 'static {
    /// One operation.
    fn lap(&mut self) -> impl Future<Output = Outcome<Lap>> + Send;
}

const WARMING: u8 = 0;
const MEASURED: u8 = 1;
const OVER: u8 = 2;

/// The shared state of the workers.
#[derive(Debug)]
struct Field {
    phase: AtomicU8,
    ops: AtomicU64,
    measurements: Measurements,
}

/// The measurements.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) measurements: Measurements,
    pub(crate) cost: Map<String, Value>,
    pub(crate) stuck: usize,
}

/// Lets all workers continue for `warm`, then for `span`, of which everything that ends in it counts.
pub(crate) async fn for_a_time(
    workers: Vec<impl Worker>,
    warm: Duration,
    span: Duration,
    meters: &Meters,
) -> Outcome<Measured> {
    let field = Arc::new(Field {
        phase: AtomicU8::new(WARMING),
        ops: AtomicU64::new(0),
        measurements: Measurements::new(),
    });
    let mut running = JoinSet::new();
    for mut worker in workers {
        let field = Arc::clone(&field);
        running.spawn(async move {
            while field.phase.load(Ordering::Relaxed) != OVER {
                let lap = worker.lap().await?;
                if field.phase.load(Ordering::Relaxed) == MEASURED {
                    field.ops.fetch_add(1, Ordering::Relaxed);
                    field.measurements.add(lap);
                }
            }
            Outcome::Ok(())
        });
    }
    sleep(warm).await;
    let earlier = meters.read().await;
    field.phase.store(MEASURED, Ordering::Relaxed);
    sleep(span).await;
    field.phase.store(OVER, Ordering::Relaxed);
    let later = meters.read().await;
    let stuck = joined(&mut running).await?;
    drop(running);
    let cost = later.since(&earlier, meters, field.ops.load(Ordering::Relaxed));
    // A stuck worker still has its share.
    let measurements =
        Arc::try_unwrap(field).map_or_else(|_| Measurements::new(), |field| field.measurements);
    Ok(Measured { measurements, cost, stuck })
}

/// Lets one worker do `warm` laps, then the `count` that are measured.
pub(crate) async fn counted(
    mut worker: impl Worker,
    warm: u64,
    count: u64,
    meters: &Arc<Meters>,
) -> Outcome<Measured> {
    let meters = Arc::clone(meters);
    // A task, as a service's would be: what `block_on` runs has a thread of its own, which must be woken each
    // time.
    let task = tokio::spawn(async move {
        for _ in 0..warm {
            worker.lap().await?;
        }
        let measurements = Measurements::new();
        let earlier = meters.read().await;
        for _ in 0..count {
            measurements.add(worker.lap().await?);
        }
        let later = meters.read().await;
        Outcome::Ok(Measured { measurements, cost: later.since(&earlier, &meters, count), stuck: 0 })
    });
    task.await?
}

/// Waits for all workers with patience, and returns how many did not come.
pub(crate) async fn joined(running: &mut JoinSet<Outcome<()>>) -> Outcome<usize> {
    let all = async {
        while let Some(ended) = running.join_next().await {
            ended??;
        }
        Outcome::Ok(())
    };
    match timeout(PATIENCE, all).await {
        Ok(ended) => ended.map(|()| 0),
        Err(_) => Ok(running.len()),
    }
}
