//! Permits of one semaphore.

use std::sync::Arc;

use lockkeeper::Semaphore;

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
    for number in 0..fixture.arguments.size("w")? {
        let semaphore = Semaphore::new(fixture.manager(number)?, fixture.path("semaphore"), permits)?;
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
