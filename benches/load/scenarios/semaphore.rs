//! Permits of one semaphore.

use std::sync::Arc;
use std::time::Duration;

use lockkeeper::Semaphore;
use lockkeeper::config::HandOffPolicy;

use super::{report, timed};
use crate::Outcome;
use crate::fixture::Fixture;
use crate::measurements::{Lap, now};
use crate::report::Report;
use crate::room::Room;
use crate::run::Worker;

pub(super) async fn run(fixture: &Fixture<'_>) -> Outcome<Report> {
    let permits = u32::try_from(fixture.arguments.number("leases")?)?;
    let room = Arc::new(Room::with_space(i64::from(permits)));
    let mut workers = Vec::new();
    let is_kept = fixture.arguments.number("keep")? > 0;
    let policy = HandOffPolicy::default().idle_time(Duration::from_secs(1));
    // One for each session, shared by its tasks.
    let mut kept: Vec<Semaphore> = Vec::new();
    let sessions = fixture.arguments.size("s")?;
    for number in 0..fixture.arguments.size("w")? {
        let shared = number.checked_rem(sessions).and_then(|session| kept.get(session));
        let semaphore = match shared {
            Some(shared) => Semaphore::clone(shared),
            None => {
                let semaphore = Semaphore::new(fixture.manager(number)?, fixture.path("semaphore"), permits)?;
                if is_kept { semaphore.with_handoff(policy)? } else { semaphore }
            }
        };
        if is_kept && kept.len() < sessions {
            kept.push(semaphore.clone());
        }
        workers.push(Guest { semaphore, room: Arc::clone(&room) });
    }
    let measured = timed(fixture, workers).await?;
    Ok(report(fixture, measured, room.violations()))
}

struct Guest {
    semaphore: Semaphore,
    room: Arc<Room>,
}

impl Worker for Guest {
    async fn lap(&mut self) -> Outcome<Lap> {
        let asked = now();
        let lease = self.semaphore.acquire().await?;
        let granted = now();
        self.room.enter(1);
        self.room.leave(1);
        let released = now();
        lease.release().await?;
        Ok(Lap { acquire: granted - asked, release: Some(released.elapsed()), handover: None })
    }
}
