//! A member that joins a partition and leaves it: how long until each item is where it belongs, and how many
//! move.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lockkeeper::error::Closed;
use lockkeeper::partition::{PartitionMember, PartitionShare};
use lockkeeper::{Partition, Watch};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use super::{counted, report};
use crate::Outcome;
use crate::fixture::Fixture;
use crate::measurements::{Lap, now};
use crate::report::Report;
use crate::run::{PATIENCE, Worker};

/// `w` members stay and share `k` items; one more joins (acquire) and leaves (release).
pub(super) async fn run(fixture: &Fixture<'_>) -> Outcome<Report> {
    let (path, moves) = (fixture.path("rebalance"), Arc::new(AtomicU64::new(0)));
    let items: Vec<String> = (0..fixture.arguments.size("k")?).map(|item| format!("{item:05}")).collect();
    Partition::new(fixture.manager(0)?, path.as_str())?.add(&items).await?;
    let mut present = Vec::new();
    for number in 0..fixture.arguments.size("w")? {
        let partition = Partition::new(fixture.manager(number)?, path.as_str())?;
        present.push(Serving::start(partition.join(&format!("member-{number}"))?, &moves));
    }
    let extra = Partition::new(fixture.manager(present.len())?, path.as_str())?;
    let mut changes = Changes { present, extra, moves: Arc::clone(&moves), least: Arc::default() };
    changes.settled(0).await?;
    let least = Arc::clone(&changes.least);
    moves.store(0, Ordering::Relaxed);
    let measured = counted(fixture, changes).await?;
    let mut report = report(fixture, measured, 0);
    report.set("moves", moves.load(Ordering::Relaxed));
    report.set("moves_min", least.load(Ordering::Relaxed));
    Ok(report)
}

struct Changes {
    present: Vec<Serving>,
    extra: Partition,
    moves: Arc<AtomicU64>,
    /// What had to move: the share of the member that joins and leaves.
    least: Arc<AtomicU64>,
}

impl Changes {
    /// Waits until each of the present members, and of so many more, has its share, and no other item.
    async fn settled(&mut self, more: u32) -> Outcome<()> {
        let members = u32::try_from(self.present.len())? + more;
        for serving in &mut self.present {
            serving.settled(members).await?;
        }
        Ok(())
    }
}

impl Worker for Changes {
    async fn lap(&mut self) -> Outcome<Lap> {
        let asked = now();
        let mut extra = Serving::start(self.extra.join("extra")?, &self.moves);
        let members = u32::try_from(self.present.len())? + 1;
        extra.settled(members).await?;
        self.settled(1).await?;
        let acquire = asked.elapsed();
        let share = u64::try_from(extra.share.state().held().count())?;
        self.least.fetch_add(2 * share, Ordering::Relaxed);
        let leaving = now();
        extra.leave().await?;
        self.settled(0).await?;
        Ok(Lap { acquire, release: Some(leaving.elapsed()), handover: None })
    }
}

/// A member that takes its items, and gives up each when it is asked to.
struct Serving {
    share: Watch<PartitionShare>,
    /// How many items it works on.
    working: watch::Receiver<usize>,
    stop: oneshot::Sender<()>,
    task: tokio::task::JoinHandle<Result<(), lockkeeper::Error>>,
}

impl Serving {
    fn start(mut member: PartitionMember, moves: &Arc<AtomicU64>) -> Self {
        let (stop, mut stopped) = oneshot::channel();
        let (share, moves) = (member.assigned(), Arc::clone(moves));
        let (works, working) = watch::channel(0);
        let task = tokio::spawn(async move {
            let mut items = JoinSet::new();
            loop {
                tokio::select! {
                    _ = &mut stopped => break,
                    Some(item) = member.next() => {
                        moves.fetch_add(1, Ordering::Relaxed);
                        works.send_modify(|count| *count += 1);
                        let works = works.clone();
                        items.spawn(async move {
                            item.release_requested().await;
                            works.send_modify(|count| *count -= 1);
                        });
                    }
                }
            }
            member.leave().await
        });
        Self { share, working, stop, task }
    }

    async fn settled(&mut self, members: u32) -> Outcome<()> {
        let is_settled = |share: &PartitionShare| share.members() == members && share.is_settled();
        let settled = async {
            while !is_settled(&self.share.state()) {
                self.share.changed().await?;
            }
            Ok::<_, Closed>(self.share.state().held().count())
        };
        let held = tokio::time::timeout(PATIENCE, settled).await??;
        // An item that is held and not taken yet would move back without having been counted.
        tokio::time::timeout(PATIENCE, self.working.wait_for(|count| *count == held)).await??;
        Ok(())
    }

    async fn leave(self) -> Outcome<()> {
        drop(self.stop);
        Ok(self.task.await??)
    }
}
