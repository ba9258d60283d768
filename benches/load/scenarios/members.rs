//! Members that join and leave a group of many.

use lockkeeper::Group;
use lockkeeper::presence::Membership;

use super::{report, timed};
use crate::Outcome;
use crate::fixture::Fixture;
use crate::measurements::{Lap, now};
use crate::report::Report;
use crate::run::Worker;

/// `k` members stay, and each worker joins and leaves, again and again, while one view follows them all.
pub(super) async fn run(fixture: &Fixture<'_>) -> Outcome<Report> {
    let (path, present) = (fixture.path("members"), fixture.arguments.size("k")?);
    let mut members: Vec<Membership> = Vec::with_capacity(present);
    for number in 0..present {
        members.push(Group::new(fixture.manager(number)?, path.as_str())?.join(&format!("{number:05}"), "")?);
    }
    for member in &members {
        member.registered().await?;
    }
    let view = Group::new(fixture.manager(0)?, path.as_str())?.members()?;
    view.ready().await?;
    let mut workers = Vec::new();
    for number in 0..fixture.arguments.size("w")? {
        let group = Group::new(fixture.manager(number)?, path.as_str())?;
        workers.push(Newcomer { group, id: format!("worker-{number}") });
    }
    let measured = timed(fixture, workers).await?;
    let shown = view.sync().await?.children("").count();
    let mut report = report(fixture, measured, u64::from(shown != present));
    report.set("members", shown);
    Ok(report)
}

struct Newcomer {
    group: Group,
    id: String,
}

impl Worker for Newcomer {
    async fn lap(&mut self) -> Outcome<Lap> {
        let asked = now();
        let membership = self.group.join(&self.id, "payload")?;
        membership.registered().await?;
        let acquire = asked.elapsed();
        let leaving = now();
        membership.leave().await?;
        Ok(Lap { acquire, release: Some(leaving.elapsed()), handover: None })
    }
}
