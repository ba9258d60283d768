//! Several processes draw increasing ids, and none is drawn twice.
//!
//! The next id is a number in a node. A process reads it and writes the next one: under a [`Mutex`] no other process
//! does so between the two. With `--no-lock` another process does.
//!
//! `cargo run --example id_generator`, or `-- --no-lock`, or `-- --connect host:port,…`

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, value_parser};
use lockkeeper::{ANY_VERSION, Mutex};
use lockkeeper_examples::fixture::{Common, Example, Failure, Fixture, Verdict, Worker, patiently, play};
use tokio::time::{Instant, sleep};

/// Draws increasing ids in several processes at once, none twice.
#[derive(Debug, Parser)]
#[command(name = "id_generator")]
struct IdGenerator {
    /// How many processes draw
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = value_parser!(u32).range(2..=64))]
    processes: u32,

    /// How long they draw, in seconds
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = value_parser!(u64).range(1..=3_600))]
    seconds: u64,

    /// Draw without the lock, to see what it is good for
    #[arg(long)]
    no_lock: bool,

    #[command(flatten)]
    common: Common,
}

/// Between reading the next id and writing the one behind it. Any program takes its time there; some more of it shows
/// sooner what comes of that.
const THINK: Duration = Duration::from_millis(2);

fn main() -> ExitCode {
    play::<IdGenerator>()
}

impl IdGenerator {
    /// Draws one id.
    ///
    /// Done again when the lock was lost, or when the answer to the commit was: then an id may be left out, and none is
    /// drawn twice.
    async fn draw(&self, worker: &Worker) -> Result<u64, Failure> {
        let mutex = Mutex::new(worker.manager(), worker.path("lock")?)?;
        let next = worker.path("next")?;

        let guard = mutex.acquire().await?;
        let id = number(worker.znodes().read(&next).await?.map(|(data, _)| data))?;
        sleep(THINK).await;
        // Committed only if the lock is still ours, however long we were away.
        guard.txn().set(next, (id + 1).to_string().into_bytes(), ANY_VERSION).commit().await?;
        // The id is ours even if the release fails: lockkeeper continues to delete the node.
        let _ = guard.release().await;
        Ok(id)
    }

    /// The same without the lock.
    async fn draw_without_lock(&self, worker: &Worker) -> Result<u64, Failure> {
        let next = worker.path("next")?;
        let id = number(worker.znodes().read(&next).await?.map(|(data, _)| data))?;
        sleep(THINK).await;
        worker.znodes().write(&next, (id + 1).to_string().as_bytes(), ANY_VERSION).await?;
        Ok(id)
    }
}

impl Example for IdGenerator {
    /// An id that was drawn.
    type News = u64;

    fn common(&self) -> &Common {
        &self.common
    }

    async fn work(&self, worker: &Worker) -> Result<(), Failure> {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(self.seconds) {
            let id = if self.no_lock {
                patiently(|| self.draw_without_lock(worker)).await?
            } else {
                patiently(|| self.draw(worker)).await?
            };
            worker.tell(&id)?;
        }
        Ok(())
    }

    async fn lead(&self, fixture: &mut Fixture<u64>) -> Result<Verdict, Failure> {
        fixture.set_up("next", b"1").await?;
        fixture.start(self.processes).await?;
        let how = if self.no_lock { "without the lock" } else { "under one mutex" };
        println!("{} processes draw ids for {} s, {how}", self.processes, self.seconds);

        let mut drawn = vec![Vec::new(); self.processes as usize + 1];
        for (process, id) in fixture.rest().await? {
            if let Some(ids) = drawn.get_mut(process as usize) {
                ids.push(id);
            }
        }
        for (process, ids) in drawn.iter().enumerate().skip(1) {
            println!(
                "process {process} drew {} ids, the first ones {:?}",
                ids.len(),
                ids.get(..5).unwrap_or(ids)
            );
        }
        let count = drawn.iter().flatten().count();
        let twice = count - drawn.iter().flatten().collect::<BTreeSet<_>>().len();
        let increasing = drawn.iter().all(|ids| ids.is_sorted_by(|earlier, later| earlier < later));
        let order = if increasing { "increasing" } else { "NOT increasing" };
        Ok(Verdict::of(
            increasing && twice == 0 && count > 0,
            format!(
                "{} processes drew {count} ids, {order} in each, {twice} of them drawn before",
                self.processes
            ),
        ))
    }
}

fn number(data: Option<Vec<u8>>) -> Result<u64, Failure> {
    let number = data.and_then(|data| String::from_utf8(data).ok()?.parse().ok());
    number.ok_or_else(|| {
        Failure::Other("the next id is missing; were the nodes of this run deleted?".to_owned())
    })
}
