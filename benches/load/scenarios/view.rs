//! A view of many nodes: how long its first load takes, what it keeps in memory, how late a change is in it,
//! and how fast its snapshot is read.

use std::time::{Duration, Instant};

use lockkeeper::znodes::{CreateMode, Version};
use lockkeeper::{ConnectionManager, Mutex, TreeView};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::Outcome;
use crate::counters::resident;
use crate::fixture::Fixture;
use crate::measurements::{Lap, Measurements, now};
use crate::report::Report;

/// The nodes of one directory, which one transaction creates.
const DIRECTORY: usize = 1_000;
/// For how long snapshots are read, and how many reads are between two looks at the clock.
const READING: Duration = Duration::from_millis(500);
const READS: u64 = 10_000;

pub(super) async fn run(fixture: &Fixture<'_>) -> Outcome<Report> {
    let arguments = fixture.arguments;
    let (nodes, root) = (arguments.size("k")?, fixture.path("view"));
    let manager = fixture.manager(0)?;
    fill(manager, &root, nodes).await?;

    let before = resident();
    let begun = now();
    let view = TreeView::new(manager, root.as_str())?;
    let loaded = view.ready().await?.len();
    let load = begun.elapsed();
    let keeping = resident();

    let path = format!("{root}/0/0");
    let mut arrivals = arrivals(&view);
    for _ in 0..arguments.number("warmn")? {
        change(manager, &mut arrivals, &path).await?;
    }
    let measurements = Measurements::new();
    let earlier = fixture.meters.read().await;
    for _ in 0..arguments.number("n")? {
        measurements.add(change(manager, &mut arrivals, &path).await?);
    }
    let later = fixture.meters.read().await;
    let cost = later.since(&earlier, &fixture.meters, arguments.number("n")?);

    let mut report = Report::new(arguments, &measurements, cost, 0, 0);
    report.set("nodes", loaded);
    report.set("load_s", load.as_secs_f64());
    report.set("rss_before_kb", before);
    report.set("rss_keeping_kb", keeping);
    report.set("snapshot_reads_s", reads(&view));
    Ok(report)
}

/// Creates the nodes, a directory in each transaction.
async fn fill(manager: &ConnectionManager, root: &str, nodes: usize) -> Outcome<()> {
    let guard = Mutex::new(manager, format!("{root}-lock"))?.acquire().await?;
    for (directory, first) in (0..nodes).step_by(DIRECTORY).enumerate() {
        let path = format!("{root}/{directory}");
        manager.znodes().create(path.as_str(), "", CreateMode::Persistent).await?;
        let names = 0..DIRECTORY.min(nodes - first);
        let all = names.fold(guard.txn(), |txn, name| txn.create(format!("{path}/{name}"), "12345678"));
        all.commit().await?;
    }
    Ok(guard.release().await?)
}

/// The instants at which a task that reads the stream has a change, as Curator's listener has it in its
/// thread.
fn arrivals(view: &TreeView) -> UnboundedReceiver<Instant> {
    let (arrived, arrivals) = unbounded_channel();
    let mut changes = view.changes();
    tokio::spawn(async move {
        while let Some(difference) = changes.next().await {
            if !difference.changes().is_empty() && arrived.send(now()).is_err() {
                return;
            }
        }
    });
    arrivals
}

/// One write: until the view's stream has it (acquire), and until its own answer (release).
async fn change(
    manager: &ConnectionManager,
    arrivals: &mut UnboundedReceiver<Instant>,
    path: &str,
) -> Outcome<Lap> {
    let asked = now();
    manager.znodes().write(path, "87654321", Version::Any).await?;
    let release = asked.elapsed();
    let arrived = arrivals.recv().await.ok_or("the view has ended")?;
    Ok(Lap { acquire: arrived - asked, release: Some(release), handover: None })
}

/// The reads of the snapshot in a second, by one thread.
#[expect(clippy::cast_precision_loss, reason = "a figure for people to read")]
fn reads(view: &TreeView) -> f64 {
    let (begun, mut count) = (now(), 0);
    while begun.elapsed() < READING {
        for _ in 0..READS {
            count += u64::from(std::hint::black_box(view.snapshot()).revision() > 0);
        }
    }
    count as f64 / begun.elapsed().as_secs_f64()
}
