//! Loads of a mutex: alone, handed off, and many of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lockkeeper::Mutex;
use lockkeeper::config::HandOffPolicy;

use super::{counted, report, timed};
use crate::Outcome;
use crate::fixture::Fixture;
use crate::measurements::{Lap, now};
use crate::pause;
use crate::report::Report;
use crate::room::Room;
use crate::run::Worker;

/// A free mutex, taken and released.
pub(super) async fn uncontended(fixture: &Fixture<'_>) -> Outcome<Report> {
    let mut mutex = Mutex::new(fixture.manager(0)?, fixture.path("uncontended"))?;
    if fixture.arguments.number("keep")? > 0 {
        mutex = mutex.with_handoff(HandOffPolicy::default().idle_time(Duration::from_secs(1)))?;
    }
    let mut worker = Passer::new(mutex, Arc::new(Room::with_space(1)), Arc::new(Baton::new()));
    worker.awaits_release = fixture.arguments.word("release") == "await";
    worker.times_handover = false;
    let room = Arc::clone(&worker.room);
    let measured = counted(fixture, worker).await?;
    Ok(report(fixture, measured, room.violations()))
}

/// A mutex that is handed off.
pub(super) async fn handoff(fixture: &Fixture<'_>) -> Outcome<Report> {
    let (room, baton) = (Arc::new(Room::with_space(1)), Arc::new(Baton::new()));
    let mut workers = Vec::new();
    let is_kept = fixture.arguments.number("keep")? > 0;
    // One for each session, shared by its tasks.
    let mut kept: Vec<Mutex> = Vec::new();
    let sessions = fixture.arguments.size("s")?;
    for number in 0..fixture.arguments.size("w")? {
        let shared = number.checked_rem(sessions).and_then(|session| kept.get(session));
        let mutex = match shared {
            Some(shared) => shared.clone(),
            None => {
                let mutex = Mutex::new(fixture.manager(number)?, fixture.path("handoff"))?;
                if is_kept { mutex.with_handoff(HandOffPolicy::default())? } else { mutex }
            }
        };
        if is_kept && kept.len() < sessions {
            kept.push(mutex.clone());
        }
        let mut worker = Passer::new(mutex, Arc::clone(&room), Arc::clone(&baton));
        worker.hold = Duration::from_millis(fixture.arguments.number("hold")?);
        workers.push(worker);
    }
    let measured = timed(fixture, workers).await?;
    Ok(report(fixture, measured, room.violations()))
}

/// Many mutexes, of which each task takes any.
pub(super) async fn many(fixture: &Fixture<'_>) -> Outcome<Report> {
    let paths = fixture.arguments.size("k")?;
    let rooms: Vec<_> = (0..paths).map(|_| Arc::new(Room::with_space(1))).collect();
    let mut workers = Vec::new();
    for number in 0..fixture.arguments.size("w")? {
        let mut passers = Vec::new();
        for (path, room) in rooms.iter().enumerate() {
            let path = fixture.path(&format!("many/{path}"));
            let mutex = Mutex::new(fixture.manager_for(number, &path)?, path)?;
            let mut passer = Passer::new(mutex, Arc::clone(room), Arc::new(Baton::new()));
            passer.times_handover = false;
            passers.push(passer);
        }
        workers.push(Wanderer { passers, rng: Rng(number as u64) });
    }
    let measured = timed(fixture, workers).await?;
    Ok(report(fixture, measured, rooms.iter().map(|room| room.violations()).sum()))
}

/// Takes a mutex and releases it.
struct Passer {
    mutex: Mutex,
    room: Arc<Room>,
    baton: Arc<Baton>,
    hold: Duration,
    awaits_release: bool,
    times_handover: bool,
}

impl Passer {
    fn new(mutex: Mutex, room: Arc<Room>, baton: Arc<Baton>) -> Self {
        Self { mutex, room, baton, hold: Duration::ZERO, awaits_release: true, times_handover: true }
    }
}

impl Worker for Passer {
    async fn lap(&mut self) -> Outcome<Lap> {
        let asked = now();
        let guard = self.mutex.acquire().await?;
        let granted = now();
        self.room.enter(1);
        let handover = if self.times_handover { self.baton.taken(granted) } else { None };
        if !self.hold.is_zero() {
            pause::exactly(self.hold).await?;
        }
        self.room.leave(1);
        let released = now();
        if self.times_handover {
            self.baton.given(released);
        }
        if self.awaits_release {
            guard.release().await?;
        } else {
            drop(guard);
        }
        Ok(Lap { acquire: granted - asked, release: Some(released.elapsed()), handover })
    }
}

/// Takes any of many mutexes.
struct Wanderer {
    passers: Vec<Passer>,
    rng: Rng,
}

impl Worker for Wanderer {
    async fn lap(&mut self) -> Outcome<Lap> {
        let index = self.rng.below(self.passers.len() as u64);
        let passer = usize::try_from(index).ok().and_then(|index| self.passers.get_mut(index));
        passer.ok_or("no paths")?.lap().await
    }
}

/// When the holder called release: what the next one's grant is measured from.
#[derive(Debug)]
pub(super) struct Baton {
    origin: Instant,
    /// Nanoseconds since the origin; 0 while no hand-off is in flight.
    given: AtomicU64,
}

impl Baton {
    pub(super) fn new() -> Self {
        Self { origin: now(), given: AtomicU64::new(0) }
    }

    pub(super) fn given(&self, at: Instant) {
        self.given.store(self.nanoseconds(at), Ordering::SeqCst);
    }

    pub(super) fn taken(&self, at: Instant) -> Option<Duration> {
        let given = self.given.swap(0, Ordering::SeqCst);
        (given != 0).then(|| Duration::from_nanos(self.nanoseconds(at).saturating_sub(given)))
    }

    fn nanoseconds(&self, at: Instant) -> u64 {
        u64::try_from((at - self.origin).as_nanos()).unwrap_or(u64::MAX)
    }
}

/// The same throws in every run (SplitMix64).
#[derive(Debug)]
pub(super) struct Rng(pub(super) u64);

impl Rng {
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)).checked_rem(bound).unwrap_or_default()
    }
}
