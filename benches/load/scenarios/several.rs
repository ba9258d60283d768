//! Several free mutexes at once.

use std::sync::Arc;

use lockkeeper::{MultiLock, Mutex};

use super::{counted, report};
use crate::Outcome;
use crate::fixture::Fixture;
use crate::measurements::{Lap, now};
use crate::report::Report;
use crate::room::Room;
use crate::run::Worker;

pub(super) async fn run(fixture: &Fixture<'_>) -> Outcome<Report> {
    let mut builder = MultiLock::builder();
    for path in 0..fixture.arguments.size("k")? {
        builder = builder.lock(&Mutex::new(fixture.manager(0)?, fixture.path(&format!("multi/{path}")))?);
    }
    let room = Arc::new(Room::with_space(1));
    let measured = counted(fixture, Collector { locks: builder.build()?, room: Arc::clone(&room) }).await?;
    Ok(report(fixture, measured, room.violations()))
}

struct Collector {
    locks: MultiLock,
    room: Arc<Room>,
}

impl Worker for Collector {
    async fn lap(&mut self) -> Outcome<Lap> {
        let asked = now();
        let guard = self.locks.acquire().await?;
        let granted = now();
        self.room.enter(1);
        self.room.leave(1);
        let released = now();
        guard.release().await?;
        Ok(Lap { acquire: granted - asked, release: Some(released.elapsed()), handover: None })
    }
}
