//! Everyone waits behind one holder, and is then served once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lockkeeper::Mutex;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::Outcome;
use crate::counters::resident;
use crate::fixture::Fixture;
use crate::measurements::{Lap, Measurements, now};
use crate::report::Report;
use crate::room::Room;
use crate::run::{PATIENCE, joined};

/// An acquire is timed from the holder's release, the part that the queue determines.
pub(super) async fn run(fixture: &Fixture<'_>) -> Outcome<Report> {
    let (path, waiters) = (fixture.path("herd"), fixture.arguments.size("w")?);
    let (room, measurements) = (Arc::new(Room::with_space(1)), Arc::new(Measurements::new()));
    let held = Mutex::new(fixture.manager(0)?, path.as_str())?.acquire().await?;
    let (opened, opening) = watch::channel(None);
    let before = resident();
    let queueing = now();
    let mut running = JoinSet::new();
    for number in 0..waiters {
        let mutex = Mutex::new(fixture.manager(number)?, path.as_str())?;
        running.spawn(wait(mutex, Arc::clone(&room), Arc::clone(&measurements), opening.clone()));
    }
    queued(fixture, &path, waiters).await?;
    let queued = queueing.elapsed();
    let waiting = resident();
    let earlier = fixture.meters.read().await;
    opened.send_replace(Some(now()));
    held.release().await?;
    let stuck = joined(&mut running).await?;
    let later = fixture.meters.read().await;
    let cost = later.since(&earlier, &fixture.meters, (waiters - stuck) as u64);
    let mut report = Report::new(fixture.arguments, &measurements, cost, room.violations(), stuck);
    report.set("queue_s", (queued.as_secs_f64() * 1000.0).round() / 1000.0);
    report.set("rss_before_kb", before);
    report.set("rss_waiting_kb", waiting);
    Ok(report)
}

/// Waits until the holder and all waiters have their nodes.
async fn queued(fixture: &Fixture<'_>, path: &str, waiters: usize) -> Outcome<()> {
    let znodes = fixture.manager(0)?.znodes();
    let all = async {
        while znodes.children(path).await?.map_or(0, |line| line.len()) <= waiters {
            sleep(Duration::from_millis(20)).await;
        }
        Outcome::Ok(())
    };
    timeout(PATIENCE, all).await.map_err(|_| "the waiters did not get their nodes")?
}

async fn wait(
    mutex: Mutex,
    room: Arc<Room>,
    measurements: Arc<Measurements>,
    opening: watch::Receiver<Option<Instant>>,
) -> Outcome<()> {
    let guard = mutex.acquire().await?;
    let granted = now();
    room.enter(1);
    room.leave(1);
    let opened = opening.borrow().unwrap_or(granted);
    let released = now();
    guard.release().await?;
    measurements.add(Lap { acquire: granted - opened, release: Some(released.elapsed()), handover: None });
    Ok(())
}
