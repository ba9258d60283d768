//! Many processes read a configuration while some write it, and no process ever sees half of it.
//!
//! The configuration is several nodes, written one after another. Under an [`RwLock`] readers read side by
//! side, and a writer is alone. It then downgrades to a reader and checks what it wrote, before the next
//! writer is granted.
//!
//! A lock keeps others out; it finishes nothing. A writer that dies half way leaves half of it: what must
//! never be seen half, crash or no crash, is written in one `write.txn()`.
//!
//! `cargo run --example config_cache`, or `-- --no-lock`, or `-- --connect host:port,…`

use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, value_parser};
use lockkeeper::znodes::Version;
use lockkeeper::{Error, RwLock};
use lockkeeper_demos::fixture::{
    Common, Example, Failure, Fixture, Verdict, Worker, patiently, patiently_once, play,
};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

/// Many processes read a configuration of several nodes, some write it, and no process sees half of it.
#[derive(Debug, Parser)]
#[command(name = "config_cache")]
struct ConfigCache {
    /// How many processes read
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = value_parser!(u32).range(1..=64))]
    readers: u32,

    /// How many processes write
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = value_parser!(u32).range(1..=64))]
    writers: u32,

    /// For how long, in seconds
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = value_parser!(u64).range(1..=3_600))]
    seconds: u64,

    /// Do it without the lock, to see what it is good for
    #[arg(long)]
    no_lock: bool,

    #[command(flatten)]
    common: Common,
}

/// The nodes of the configuration.
const PARTS: [&str; 3] = ["config/host", "config/user", "config/password"];

/// Between two writes.
const THINK: Duration = Duration::from_millis(2);

/// Readers hardly rest. Writers do: this is for what is read more than written.
const READERS_REST: Duration = Duration::from_millis(1);
const WRITERS_REST: Duration = Duration::from_millis(40);

/// The observations of a process.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Seen {
    reads: u64,
    /// Of these, how many saw parts that do not belong together.
    torn: u64,
    writes: u64,
    /// The number of these that the writer found unchanged after its downgrade.
    verified: u64,
}

fn main() -> ExitCode {
    play::<ConfigCache>()
}

impl ConfigCache {
    /// Reads all parts; no process writes meanwhile.
    async fn read(&self, worker: &Worker, lock: &RwLock) -> Result<[Vec<u8>; 3], Error> {
        let guard = lock.read().await?;
        let parts = guard.run(parts(worker)).await??;
        // The result is valid even if the release fails: lockkeeper continues to delete the node.
        let _ = guard.release().await;
        Ok(parts)
    }

    /// Writes all parts one after another, and returns what it reads afterwards. No process reads meanwhile,
    /// and no other process writes before this check.
    async fn write(&self, worker: &Worker, lock: &RwLock, value: &str) -> Result<[Vec<u8>; 3], Error> {
        let write = lock.write().await?;
        for part in PARTS {
            // Each is committed only if the lock is still ours.
            let value = value.as_bytes().to_vec();
            write.txn().set(worker.path(part)?, value, Version::Any).commit().await?;
            sleep(THINK).await;
        }
        // Readers come in now. Writers do not, not even one that has been waiting.
        let read = write.downgrade().await?;
        let parts = parts(worker).await?;
        let _ = read.release().await;
        Ok(parts)
    }

    /// The same without the lock.
    async fn write_without_lock(&self, worker: &Worker, value: &str) -> Result<[Vec<u8>; 3], Error> {
        for part in PARTS {
            worker.znodes().write(&worker.path(part)?, value.as_bytes(), Version::Any).await?;
            sleep(THINK).await;
        }
        parts(worker).await
    }
}

impl Example for ConfigCache {
    type News = Seen;

    /// No process crashes here: long, so that no writer is lost in the middle on a busy machine.
    const SESSION: Duration = Duration::from_secs(5);

    fn common(&self) -> &Common {
        &self.common
    }

    async fn work(&self, worker: &Worker) -> Result<(), Failure> {
        let lock = RwLock::new(worker.manager(), worker.path("lock")?)?;
        let mut seen = Seen::default();
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(self.seconds) {
            if worker.number() <= self.writers {
                seen.writes += 1;
                let value = format!("revision {} of writer {}", seen.writes, worker.number());
                let parts = if self.no_lock {
                    patiently(|| self.write_without_lock(worker, &value)).await?
                } else {
                    patiently(|| self.write(worker, &lock, &value)).await?
                };
                seen.verified += u64::from(parts.iter().all(|part| part == value.as_bytes()));
                sleep(WRITERS_REST).await;
            } else {
                let parts = if self.no_lock {
                    parts(worker).await?
                } else {
                    patiently_once(|| self.read(worker, &lock)).await?
                };
                seen.reads += 1;
                seen.torn += u64::from(!parts.iter().all(|part| *part == parts[0]));
                sleep(READERS_REST).await;
            }
        }
        worker.tell(&seen)
    }

    async fn lead(&self, fixture: &mut Fixture<Seen>) -> Result<Verdict, Failure> {
        for part in PARTS {
            fixture.set_up(part, b"revision 0").await?;
        }
        fixture.start(self.readers + self.writers).await?;
        let how = if self.no_lock { "without the lock" } else { "under one read/write lock" };
        println!("{} processes read and {} write for {} s, {how}", self.readers, self.writers, self.seconds);

        let mut all = Seen::default();
        for (process, Seen { reads, torn, writes, verified }) in fixture.rest().await? {
            if writes > 0 {
                println!("process {process} wrote {writes} revisions, and found {verified} of them whole");
            } else {
                println!("process {process} read {reads} times, {torn} of them torn");
            }
            all.reads += reads;
            all.torn += torn;
            all.writes += writes;
            all.verified += verified;
        }
        let Seen { reads, torn, writes, verified } = all;
        Ok(Verdict::of(
            torn == 0 && verified == writes && reads > 0 && writes > 0,
            format!("{reads} reads, {torn} torn, while {writes} revisions were written, {verified} verified"),
        ))
    }
}

/// All parts, one after another.
async fn parts(worker: &Worker) -> Result<[Vec<u8>; 3], Error> {
    let mut parts: [Vec<u8>; 3] = Default::default();
    for (part, name) in parts.iter_mut().zip(PARTS) {
        *part = worker.znodes().read(&worker.path(name)?).await?.map(|(data, _)| data).unwrap_or_default();
    }
    Ok(parts)
}
