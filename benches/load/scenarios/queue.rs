//! Items of one work queue: producers put them, and takers end them.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use lockkeeper::WorkQueue;
use lockkeeper::work_queue::WorkItem;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::Outcome;
use crate::fixture::Fixture;
use crate::measurements::{Lap, Measurements, now};
use crate::report::Report;
use crate::run::joined;

/// So many items are put in one transaction before the load begins.
const FILL: usize = 100;

/// Each producer and each taker has a handle of its own. The measured time of a taker is from the end of its
/// work on an item until it has the next one; so the end of the item is a part of it.
pub(super) async fn run(fixture: &Fixture<'_>) -> Outcome<Report> {
    let path = fixture.path("queue");
    let queue = |number: usize| -> Outcome<WorkQueue<String>> {
        Ok(WorkQueue::new(fixture.manager(number)?, path.as_str())?.with_capacity(1_000_000)?)
    };
    let load = Arc::new(Load::new(fixture)?);
    let (first, waiting) = (queue(0)?, fixture.arguments.size("waiting")?);
    for begin in (0..waiting).step_by(FILL) {
        load.put(&first, FILL.min(waiting - begin)).await?;
    }
    let (stop, stopping) = watch::channel(false);
    let (mut producers, mut takers) = (JoinSet::new(), JoinSet::new());
    for number in 0..fixture.arguments.size("p")? {
        producers.spawn(produce(Arc::clone(&load), queue(number)?, stopping.clone()));
    }
    let (stop_takers, stopping) = watch::channel(false);
    for number in 0..fixture.arguments.size("w")? {
        takers.spawn(take(Arc::clone(&load), queue(number)?, stopping.clone()));
    }
    sleep(fixture.arguments.seconds("warm")?).await;
    let earlier = fixture.meters.read().await;
    load.is_measured.store(true, Ordering::Release);
    sleep(fixture.arguments.seconds("t")?).await;
    load.is_measured.store(false, Ordering::Release);
    let later = fixture.meters.read().await;
    stop.send_replace(true);
    let stuck = joined(&mut producers).await?;
    stop_takers.send_replace(true);
    let stuck = stuck + joined(&mut takers).await?;
    let (left, violations) = load.violations(&first).await?;
    let cost = later.since(&earlier, &fixture.meters, load.ops.load(Ordering::Acquire));
    let mut report = Report::new(fixture.arguments, &load.measurements, cost, violations, stuck);
    report.set("left", left);
    Ok(report)
}

/// What producers and takers share: the items, each of which has a number.
struct Load {
    /// The length of an item's value.
    bytes: usize,
    /// The items of one put.
    batch: usize,
    /// How many more items may be put, so that the queue stays as long as it is meant to be.
    room: Semaphore,
    next: AtomicU64,
    /// The items that were put, without those that were ended.
    waiting: AtomicI64,
    ended: Mutex<HashSet<u64>>,
    ended_twice: AtomicU64,
    is_measured: AtomicBool,
    ops: AtomicU64,
    measurements: Measurements,
}

impl Load {
    fn new(fixture: &Fixture<'_>) -> Outcome<Self> {
        let (ahead, batch) = (fixture.arguments.size("ahead")?, fixture.arguments.size("batch")?);
        if ahead < batch {
            return Err("ahead has to be batch or more: no put would ever have room".into());
        }
        Ok(Self {
            bytes: fixture.arguments.size("bytes")?,
            batch,
            room: Semaphore::new(ahead),
            next: AtomicU64::new(0),
            waiting: AtomicI64::new(0),
            ended: Mutex::default(),
            ended_twice: AtomicU64::new(0),
            is_measured: AtomicBool::new(false),
            ops: AtomicU64::new(0),
            measurements: Measurements::new(),
        })
    }

    /// Puts the next items.
    async fn put(&self, queue: &WorkQueue<String>, count: usize) -> Outcome<()> {
        let (count, width) = (count as u64, self.bytes);
        let first = self.next.fetch_add(count, Ordering::AcqRel);
        let items: Vec<String> = (first..first + count).map(|number| format!("{number:0width$}")).collect();
        match items.as_slice() {
            [item] => queue.put(item).await?,
            items => queue.put_all(items).await?,
        }
        self.waiting.fetch_add(i64::try_from(count)?, Ordering::AcqRel);
        Ok(())
    }

    fn ended(&self, number: u64) {
        if !self.ended.lock().insert(number) {
            self.ended_twice.fetch_add(1, Ordering::AcqRel);
        }
        self.waiting.fetch_sub(1, Ordering::AcqRel);
        self.room.add_permits(1);
        if self.is_measured.load(Ordering::Acquire) {
            self.ops.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// The items that are left, and how many were ended twice, are lost, or are there without a put.
    async fn violations(&self, queue: &WorkQueue<String>) -> Outcome<(u32, u64)> {
        let left = queue.inspect().await?.item_count;
        let missing = self.waiting.load(Ordering::Acquire).abs_diff(i64::from(left));
        Ok((left, missing + self.ended_twice.load(Ordering::Acquire)))
    }
}

async fn produce(
    load: Arc<Load>,
    queue: WorkQueue<String>,
    mut stopping: watch::Receiver<bool>,
) -> Outcome<()> {
    let batch = u32::try_from(load.batch)?;
    while !*stopping.borrow() {
        tokio::select! {
            room = load.room.acquire_many(batch) => room?.forget(),
            _ = stopping.changed() => return Ok(()),
        }
        let asked = now();
        load.put(&queue, load.batch).await?;
        if load.is_measured.load(Ordering::Acquire) {
            load.measurements.release.add(asked.elapsed());
        }
    }
    Ok(())
}

async fn take(load: Arc<Load>, queue: WorkQueue<String>, mut stopping: watch::Receiver<bool>) -> Outcome<()> {
    let mut held: Option<(u64, WorkItem<String>)> = None;
    loop {
        let asked = now();
        if let Some((number, item)) = held.take() {
            item.done().await?;
            load.ended(number);
        }
        if *stopping.borrow() {
            return Ok(());
        }
        // A call that is dropped takes nothing.
        let item = tokio::select! {
            item = queue.take() => item?,
            _ = stopping.changed() => return Ok(()),
        };
        if load.is_measured.load(Ordering::Acquire) {
            load.measurements.add(Lap { acquire: asked.elapsed(), ..Lap::default() });
        }
        held = Some((item.value().parse()?, item));
    }
}
