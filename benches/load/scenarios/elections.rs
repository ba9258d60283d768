//! Terms of leaders, one after the other.

use std::sync::Arc;
use std::time::Duration;

use lockkeeper::Election;

use super::mutexes::Baton;
use super::{report, timed};
use crate::Outcome;
use crate::fixture::Fixture;
use crate::measurements::{Lap, now};
use crate::pause;
use crate::report::Report;
use crate::room::Room;
use crate::run::Worker;

/// Candidates that lead in turn: each campaigns, leads and resigns, again and again.
pub(super) async fn elect(fixture: &Fixture<'_>) -> Outcome<Report> {
    let (room, baton) = (Arc::new(Room::with_space(1)), Arc::new(Baton::new()));
    let hold = Duration::from_millis(fixture.arguments.number("hold")?);
    let mut workers = Vec::new();
    for number in 0..fixture.arguments.size("w")? {
        let id = format!("candidate {number}");
        let election = Election::new(fixture.manager(number)?, fixture.path("elect"), id)?;
        workers.push(Candidate { election, hold, room: Arc::clone(&room), baton: Arc::clone(&baton) });
    }
    let measured = timed(fixture, workers).await?;
    Ok(report(fixture, measured, room.violations()))
}

struct Candidate {
    election: Election,
    /// For how long it leads.
    hold: Duration,
    room: Arc<Room>,
    baton: Arc<Baton>,
}

impl Worker for Candidate {
    async fn lap(&mut self) -> Outcome<Lap> {
        let asked = now();
        let leadership = self.election.campaign().await?;
        let granted = now();
        self.room.enter(1);
        let handover = self.baton.taken(granted);
        if !self.hold.is_zero() {
            pause::exactly(self.hold).await?;
        }
        self.room.leave(1);
        let resigned = now();
        self.baton.given(resigned);
        leadership.resign().await?;
        Ok(Lap { acquire: granted - asked, release: Some(resigned.elapsed()), handover })
    }
}
