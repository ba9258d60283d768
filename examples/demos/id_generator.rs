//! Several processes draw increasing ids, and none is drawn twice.
//!
//! The next id is a number in a node. A process reads it and writes the next one: under a [`Mutex`] no other
//! process does so between the two. With `--no-lock` another process does. With `--blocks` a process takes a
//! block of ids at a time ([`IdBlocks`]), and then draws without a request: more than a million ids a second.
//! With `--kill` some of these processes are killed, and the rest of their blocks is lost.
//!
//! `cargo run --example id_generator`, or `-- --blocks 100000`, or `-- --no-lock`, or `-- --connect
//! host:port,…`, or `-- --engine redis`: then the locks are on Redis, and the number stays in ZooKeeper.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, value_parser};
use lockkeeper::error::Refusal;
use lockkeeper::znodes::Version;
use lockkeeper::{Error, IdBlocks, Mutex};
use lockkeeper_demos::fixture::{
    Common, Engine, EngineOptions, Example, Failure, Fixture, Verdict, Worker, patiently, patiently_once,
    play,
};
use lockkeeper_lock::Lock;
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

    /// How many processes are killed (kill -9) while they draw from blocks; another one replaces each
    #[arg(long, value_name = "N", default_value_t = 0, requires = "blocks")]
    kill: u32,

    /// Draw without the lock, to see what it is good for
    #[arg(long)]
    no_lock: bool,

    /// Draw from blocks of so many ids, without a lock
    #[arg(long, value_name = "N", conflicts_with = "no_lock", value_parser = value_parser!(u32).range(1..))]
    blocks: Option<u32>,

    #[command(flatten)]
    engine: EngineOptions,

    #[command(flatten)]
    common: Common,
}

/// Of the ids from blocks, so many are sent to the leading process, in a row: it would take longer to send
/// them all.
const TOLD_MAX: u64 = 10_000;

/// A process that is to be killed is killed when it has told so many ids.
const KILLED_AFTER: usize = 500;

/// Between reading the next id and writing the one behind it. Any program takes its time there; some more of
/// it shows sooner what comes of that.
const THINK: Duration = Duration::from_millis(2);

fn main() -> ExitCode {
    play::<IdGenerator>()
}

impl IdGenerator {
    /// Draws one id.
    ///
    /// Done again when the lock was lost, or when the answer to the commit was: then an id may be left out,
    /// and none is drawn twice.
    async fn draw(&self, worker: &Worker) -> Result<u64, Failure> {
        let mutex = Mutex::new(worker.manager(), worker.path("lock")?)?;
        let next = worker.path("next")?;

        let guard = mutex.acquire().await?;
        let id = number(worker.znodes().read(&next).await?.map(|(data, _)| data))?;
        sleep(THINK).await;
        // Committed only if the lock is still ours, however long we were away.
        let written = guard.txn().set(next, (id + 1).to_string().into_bytes(), Version::Any).commit().await;
        written.map_err(Error::from)?;
        // The id is ours even if the release fails: lockkeeper continues to delete the node.
        let _ = guard.release().await;
        Ok(id)
    }

    /// The same under a lock of any engine. There is no transaction that such a lock guards. So the node
    /// refuses a write that does not rest on its present version: what a paused holder writes late changes
    /// nothing.
    async fn draw_under(&self, lock: &dyn Lock, worker: &Worker) -> Result<u64, Failure> {
        let next = worker.path("next")?;
        loop {
            let guard = lock.acquire().await?;
            let drawn = guard.run(async {
                let read = worker.znodes().read(&next).await?;
                let version = read.as_ref().map_or(Version::Any, |(_, stat)| stat.version.into());
                let id = number(read.map(|(data, _)| data))?;
                sleep(THINK).await;
                match worker.znodes().write(&next, (id + 1).to_string().as_bytes(), version).await {
                    Err(Error::Refused { refusal: Refusal::BadVersion, .. }) => Ok(None),
                    written => Ok::<_, Failure>(written.map(|_| Some(id))?),
                }
            });
            let drawn = drawn.await??;
            // The id is ours even if the release fails: it continues in the background.
            let _ = guard.release().await;
            if let Some(id) = drawn {
                return Ok(id);
            }
        }
    }

    /// Draws from blocks, as fast as it can. Tells the first ids, and how many there were in all.
    async fn draw_from_blocks(&self, worker: &Worker, size: u32) -> Result<(), Failure> {
        let ids = IdBlocks::new(worker.manager(), worker.path("blocks")?, size)?;
        let (begun, mut drawn, mut last) = (Instant::now(), 0_u64, 0);
        while begun.elapsed() < Duration::from_secs(self.seconds) {
            // Looking at the clock takes longer than drawing an id.
            for _ in 0..1_000 {
                let id = patiently(|| ids.next()).await?;
                if id <= last {
                    return Err(Failure::Other(format!("{id} was drawn after {last}")));
                }
                last = id;
                drawn += 1;
                if drawn <= TOLD_MAX {
                    worker.tell(&id.unsigned_abs())?;
                }
            }
        }
        eprintln!("{} ids a second from blocks of {size}", drawn / self.seconds);
        Ok(())
    }

    /// The same without the lock.
    async fn draw_without_lock(&self, worker: &Worker) -> Result<u64, Failure> {
        let next = worker.path("next")?;
        let id = number(worker.znodes().read(&next).await?.map(|(data, _)| data))?;
        sleep(THINK).await;
        worker.znodes().write(&next, (id + 1).to_string().as_bytes(), Version::Any).await?;
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
        if let Some(size) = self.blocks {
            return self.draw_from_blocks(worker, size).await;
        }
        let begun = Instant::now();
        let locks = self.engine.connect(worker.manager()).await?;
        let lock = locks.mutex(&worker.path("lock")?)?;
        while begun.elapsed() < Duration::from_secs(self.seconds) {
            let id = if self.no_lock {
                patiently(|| self.draw_without_lock(worker)).await?
            } else if self.engine.engine == Engine::Redis {
                // After a lost answer, too: then an id may be left out.
                patiently_once(|| self.draw_under(&*lock, worker)).await?
            } else {
                patiently(|| self.draw(worker)).await?
            };
            worker.tell(&id)?;
        }
        Ok(())
    }

    async fn lead(&self, fixture: &mut Fixture<u64>) -> Result<Verdict, Failure> {
        self.engine.check().await?;
        fixture.set_up("next", b"1").await?;
        fixture.start(self.processes).await?;
        let how = match self.blocks {
            Some(_) => "from blocks",
            None if self.no_lock => "without the lock",
            None => "under one mutex",
        };
        println!("{} processes draw ids for {} s, {how}", self.processes, self.seconds);

        let (mut drawn, mut killed) = (BTreeMap::<u32, Vec<u64>>::new(), 0);
        while let Some((process, id)) = fixture.next().await? {
            let ids = drawn.entry(process).or_default();
            ids.push(id);
            if killed < self.kill && ids.len() == KILLED_AFTER {
                fixture.kill(process)?;
                killed += 1;
                println!("process {process} is killed in the middle of a block");
                fixture.start(1).await?;
            }
        }
        for (process, ids) in &drawn {
            println!(
                "process {process} drew {} ids, the first ones {:?}",
                ids.len(),
                ids.get(..5).unwrap_or(ids)
            );
        }
        let count = drawn.values().flatten().count();
        let twice = count - drawn.values().flatten().collect::<BTreeSet<_>>().len();
        let increasing = drawn.values().all(|ids| ids.is_sorted_by(|earlier, later| earlier < later));
        let order = if increasing { "increasing" } else { "NOT increasing" };
        Ok(Verdict::of(
            increasing && twice == 0 && count > 0 && killed == self.kill,
            format!(
                "{} processes drew {count} ids, {order} in each, {twice} of them drawn before",
                self.processes + killed
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
