//! A process that contends for every kind of lock, and writes down what it believes.

mod holder;
mod starter;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lockkeeper_redis::{ConnectionManager, Lock, Mutex, Owner, RateLimiter, ReentrantMutex, Semaphore};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::io::AsyncReadExt;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::holder::Holder;
use self::starter::Starter;
use super::{GRACE, LIMITER, STARTS, WINDOW};
use crate::client::Journal;
use crate::fenced::FencedClient;
use crate::history::{Mode, What};
use crate::{Failure, fixture};

/// The arguments of a client.
#[derive(Clone, Debug, clap::Args)]
pub struct RedisClientOptions {
    /// The server.
    #[arg(long)]
    pub url: String,
    /// The seed of its random number generators.
    #[arg(long)]
    pub seed: u64,
    /// Where it writes its history.
    #[arg(long)]
    pub history: PathBuf,
    /// Where the resource is that checks tokens.
    #[arg(long)]
    pub fenced: SocketAddr,
    /// The lease in milliseconds.
    #[arg(long)]
    pub lease: u64,
}

/// What every task has: a number, the history, and a random number generator.
struct Common {
    number: usize,
    journal: Arc<Journal>,
    quiet: CancellationToken,
    rng: StdRng,
}

impl Common {
    /// The time of a hold, or between two: a part of the load, and no wait for a state.
    async fn rest(&mut self, longest: u64) {
        let span = Duration::from_millis(self.rng.random_range(0..longest));
        let _ = self.quiet.run_until_cancelled(tokio::time::sleep(span)).await;
    }

    /// Within this time a future is dropped: most of the time, never.
    fn drop_after(&mut self) -> Duration {
        let longest = if self.rng.random_bool(0.2) { 50 } else { 60_000 };
        Duration::from_millis(self.rng.random_range(0..longest) + 1)
    }

    fn patience(&mut self) -> Duration {
        Duration::from_millis(self.rng.random_range(100..10_000))
    }

    fn say(&self, what: What) {
        self.journal.say(self.number, what);
    }
}

/// The time limit for the confirmation of all releases at the end. The driver does not wait as long.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(60);

/// A lock, and how it is held.
type Target = (&'static str, Box<dyn Lock>, Mode);

/// The locks of a process: one task for each. Some are contended for within the process as well.
fn targets(manager: &ConnectionManager) -> Result<Vec<Target>, Failure> {
    let limit = fixture::named("semaphore").and_then(|soak_lock| soak_lock.limit).ok_or("no limit")?;
    let semaphore = Semaphore::new(manager, "semaphore", limit)?;
    let reentrant = ReentrantMutex::new(manager, "reentrant")?.for_owner(&Owner::new("task"));
    Ok(vec![
        ("mutex", Box::new(Mutex::new(manager, "mutex")?), Mode::Alone),
        ("mutex", Box::new(Mutex::new(manager, "mutex")?), Mode::Alone),
        ("reentrant", Box::new(reentrant), Mode::Alone),
        ("semaphore", Box::new(semaphore.permits(1)), Mode::Permits(1)),
        ("semaphore", Box::new(semaphore.permits(2)), Mode::Permits(2)),
    ])
}

/// Contends until the end of its standard input.
///
/// # Errors
///
/// What kept it from starting, or from releasing everything.
pub async fn run_redis_client(options: RedisClientOptions) -> Result<(), Failure> {
    // Also when it is stopped and its parent is killed, nothing of it is left.
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    let journal = Arc::new(Journal::create(&options.history)?);
    let manager = ConnectionManager::builder(&options.url)
        .lease(Duration::from_millis(options.lease))
        .connect_deadline(Duration::from_secs(60))
        .connect()
        .await?;
    let fenced = Arc::new(FencedClient::connect(options.fenced).await?);
    let quiet = CancellationToken::new();
    let common = |number: usize| Common {
        number,
        journal: Arc::clone(&journal),
        quiet: quiet.clone(),
        rng: StdRng::seed_from_u64(options.seed.wrapping_mul(10).wrapping_add(number as u64)),
    };
    let mut tasks = JoinSet::new();
    let targets = targets(&manager)?;
    let limiter = RateLimiter::new(&manager, LIMITER, STARTS, WINDOW)?.with_grace(GRACE);
    tasks.spawn(Starter::new(common(targets.len()), limiter).run());
    for (number, (name, lock, mode)) in targets.into_iter().enumerate() {
        tasks.spawn(Holder::new(common(number), name, lock, mode, Arc::clone(&fenced)).run());
    }
    let mut end = [0];
    let _ = tokio::io::stdin().read(&mut end).await;
    quiet.cancel();
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    // The limit would be the lease, which is short for many releases on a busy machine.
    manager.with_operation_timeout(SHUTDOWN_LIMIT).shutdown().await?;
    // A blocked read of standard input would keep the runtime from ending.
    std::process::exit(0);
}
