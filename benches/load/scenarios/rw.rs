//! Readers and writers of one path.

use std::sync::Arc;
use std::time::Duration;

use lockkeeper::RwLock;
use lockkeeper::config::HandOffPolicy;

use super::mutexes::Rng;
use super::{report, timed};
use crate::Outcome;
use crate::fixture::Fixture;
use crate::measurements::{Lap, now};
use crate::report::Report;
use crate::room::{READERS_MAX, Room};
use crate::run::Worker;

pub(super) async fn run(fixture: &Fixture<'_>) -> Outcome<Report> {
    let room = Arc::new(Room::with_space(READERS_MAX));
    let mut workers = Vec::new();
    let is_kept = fixture.arguments.number("keep")? > 0;
    let policy = HandOffPolicy::default().idle_time(Duration::from_secs(1));
    // One for each session, shared by its tasks.
    let mut kept: Vec<RwLock> = Vec::new();
    let sessions = fixture.arguments.size("s")?;
    for number in 0..fixture.arguments.size("w")? {
        let shared = number.checked_rem(sessions).and_then(|session| kept.get(session));
        let lock = match shared {
            Some(shared) => RwLock::clone(shared),
            None => {
                let lock = RwLock::new(fixture.manager(number)?, fixture.path("rw"))?;
                if is_kept { lock.with_handoff(policy)? } else { lock }
            }
        };
        if is_kept && kept.len() < sessions {
            kept.push(lock.clone());
        }
        let percent = fixture.arguments.number("readpct")?;
        workers.push(Visitor { lock, room: Arc::clone(&room), percent, rng: Rng(number as u64) });
    }
    let measured = timed(fixture, workers).await?;
    Ok(report(fixture, measured, room.violations()))
}

struct Visitor {
    lock: RwLock,
    room: Arc<Room>,
    percent: u64,
    rng: Rng,
}

impl Worker for Visitor {
    async fn lap(&mut self) -> Outcome<Lap> {
        let reads = self.rng.below(100) < self.percent;
        let asked = now();
        let (granted, released);
        if reads {
            let guard = self.lock.read().await?;
            granted = now();
            self.room.enter(1);
            self.room.leave(1);
            released = now();
            guard.release().await?;
        } else {
            let guard = self.lock.write().await?;
            granted = now();
            self.room.enter(READERS_MAX);
            self.room.leave(READERS_MAX);
            released = now();
            guard.release().await?;
        }
        Ok(Lap { acquire: granted - asked, release: Some(released.elapsed()), handover: None })
    }
}
