//! A process that contends for everything, and writes down what it believes.

mod beside;
mod cells;
mod cheat;
mod errand;
mod fleet;
mod holding;
mod jobs;
mod journal;
mod look;
mod want;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lockkeeper::config::HandOffPolicy;
use lockkeeper::{ConnectionManager, ConnectionPool};
use lockkeeper_test_recipes::{SharedLock, SharedLocks};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::beside::{Beside, first_task};
use self::errand::Errand;
pub(crate) use self::journal::Journal;
use crate::Failure;
use crate::fenced::FencedClient;
use crate::fixture::{self, SOAK_LOCKS};
use crate::history::What;

/// The arguments of a client.
#[derive(Clone, Debug, clap::Args)]
pub struct ClientOptions {
    /// The servers.
    #[arg(long)]
    pub connect: String,
    /// The seed of its random number generators.
    #[arg(long)]
    pub seed: u64,
    /// Where it writes its history.
    #[arg(long)]
    pub history: PathBuf,
    /// Where the resource is that checks tokens.
    #[arg(long)]
    pub fenced: SocketAddr,
    /// Session timeout in milliseconds.
    #[arg(long)]
    pub session: u64,
    /// The servers' tick in milliseconds.
    #[arg(long)]
    pub tick: u64,
    /// Over how many sessions it takes its locks.
    #[arg(long)]
    pub sessions: u32,
    /// Breaks every rule, to see whether it is caught.
    #[arg(long)]
    pub cheat: bool,
}

/// What all tasks of a client share.
#[derive(Debug)]
struct Common {
    /// The name of this process, such as `c1.0`: that of its history.
    process: String,
    pool: ConnectionPool,
    shared: SharedLocks,
    journal: Journal,
    fenced: FencedClient,
    session: Duration,
    /// Nothing more is to be taken, and everything to be given back.
    quiet: CancellationToken,
    cheats: bool,
}

/// Contends until it is told `quiet` on its standard input, and closes its session at `stop` or the input's
/// end.
///
/// # Errors
///
/// What kept it from starting, or from closing its session.
pub async fn run_client(options: ClientOptions) -> Result<(), Failure> {
    // Also when it is stopped and its parent is killed, nothing of it is left.
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    let journal = Journal::create(&options.history)?;
    let session = Duration::from_millis(options.session);
    let pool = ConnectionManager::builder(&options.connect)
        .session_timeout(session)
        .tick_time(Duration::from_millis(options.tick))
        .connect_deadline(Duration::from_secs(300))
        .connect_pool(options.sessions)
        .await?;
    let shared = shared_locks(&pool, session, options.seed)?;
    let fenced = FencedClient::connect(options.fenced).await?;
    let quiet = CancellationToken::new();
    let process = options.history.file_stem().and_then(|name| name.to_str()).ok_or("no name")?.to_owned();
    let common = Arc::new(Common {
        process,
        pool,
        shared,
        journal,
        fenced,
        session,
        quiet: quiet.clone(),
        cheats: options.cheat,
    });

    let mut tasks = JoinSet::new();
    for (task, work) in fixture::work().enumerate() {
        let seed = options.seed.wrapping_mul(1_000).wrapping_add(task as u64);
        tasks.spawn(Errand::new(Arc::clone(&common), task, seed)?.run(work));
    }
    let beside = |number: usize| {
        let task = first_task() + number;
        Beside::new(&common, task, options.seed.wrapping_mul(1_000).wrapping_add(task as u64))
    };
    tasks.spawn(beside(0).count());
    tasks.spawn(beside(1).follow());
    tasks.spawn(beside(2).meet());
    tasks.spawn(beside(3).share());
    tasks.spawn(beside(4).register());
    tasks.spawn(beside(5).start());
    tasks.spawn(beside(6).put_jobs());
    tasks.spawn(beside(7).take_jobs());
    tasks.spawn(beside(8).take_jobs());
    tasks.spawn(beside(9).update());
    if options.cheat {
        tasks.spawn(cheat::run(Arc::clone(&common)));
    }
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    loop {
        tokio::select! {
            line = lines.next_line() => match line?.as_deref() {
                Some("quiet") => quiet.cancel(),
                _ => break,
            },
            // A task ends before it is told to only by a panic, which ends the process.
            Some(ended) = tasks.join_next() => {
                ended??;
                if tasks.is_empty() {
                    common.journal.say(0, What::Quiet);
                }
            }
        }
    }
    drop(tasks);
    common.pool.shutdown().await?;
    // A blocked read of standard input would keep the runtime from ending.
    std::process::exit(0);
}

/// The locks that the tasks of one process share. Each process keeps nodes for a while of its own.
fn shared_locks(pool: &ConnectionPool, session: Duration, seed: u64) -> Result<SharedLocks, Failure> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut shared = |path: String| {
        let idle_time = if rng.random_bool(0.5) { session / 20 } else { Duration::ZERO };
        let policy = HandOffPolicy::default()
            .max_handoffs(rng.random_range(1..20))
            .max_time(session.mul_f64(rng.random_range(0.02..0.2)))
            .idle_time(idle_time);
        let shared = SharedLock::new(pool.for_path(&path), &path, policy)?;
        Ok((path, shared))
    };
    SOAK_LOCKS.iter().map(|soak_lock| shared(fixture::path_of(soak_lock))).collect()
}
