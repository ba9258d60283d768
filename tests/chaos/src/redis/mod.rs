//! Chaos on Redis: processes that contend for every kind of lock of `lockkeeper-redis`, and faults that
//! strike them, their links and the server. The server keeps its data. The checker is that of all histories.

mod client;
mod process;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::future::try_join_all;
use lockkeeper_redis_tests::{Fault, RedisServer};
use lockkeeper_tests::{Timing, eventually};
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rustix::process::Signal;
use tokio::time::{Instant, sleep};

pub use self::client::{RedisClientOptions, run_redis_client};
use self::process::Contender;
use crate::checker::{self, Violation};
use crate::fenced::Fenced;
use crate::history::{Account, History, What};
use crate::{Failure, clock};

/// The names of the locks, which the checker knows as locks of a soak, and of the rate limiter.
const NAMES: [&str; 4] = ["mutex", "reentrant", "semaphore", LIMITER];
/// The name of the rate limiter.
const LIMITER: &str = "limiter";
/// The starts that it admits in a window.
const STARTS: u32 = 4;
/// The window.
const WINDOW: Duration = Duration::from_millis(400);
/// How late a start may come, on a machine that has more to do.
const GRACE: Duration = Duration::from_millis(200);

/// A round on Redis.
#[derive(Clone, Debug, clap::Args)]
pub struct RedisOptions {
    /// Which faults strike when.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// How many processes contend.
    #[arg(long, default_value_t = 4)]
    pub clients: usize,
    /// How long faults strike, in seconds.
    #[arg(long, default_value_t = 10)]
    pub seconds: u64,
    /// The lease, in milliseconds.
    #[arg(long, default_value_t = 1_500)]
    pub lease: u64,
    /// The server loses its data when it is killed: to see that the checker finds broken promises.
    #[arg(long)]
    pub forgets: bool,
    /// Where the histories are written.
    #[arg(long, default_value = "target/chaos")]
    pub folder: PathBuf,
}

/// The result of a round on Redis.
#[derive(Clone, Debug)]
pub struct RedisVerdict {
    /// Every broken promise.
    pub violations: Vec<Violation>,
    /// The number of grants of each lock, and of the admissions of the limiter.
    pub grants: BTreeMap<String, usize>,
    /// The faults that struck, in order.
    pub faults: Vec<RedisFault>,
    /// Where the histories are.
    pub folder: PathBuf,
}

/// One round; `program` is this package's binary.
///
/// # Errors
///
/// The failure that prevented its verdict.
pub async fn redis_round(options: &RedisOptions, program: &Path) -> Result<RedisVerdict, Failure> {
    let name = format!("redis{}-seed-{}", if options.forgets { "-forgets" } else { "" }, options.seed);
    let folder = std::path::absolute(&options.folder)?.join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    let keeps: &[&str] = &["--appendonly", "yes", "--appendfsync", "always"];
    let mut server = RedisServer::start(if options.forgets { &[] } else { keeps }).await?;
    let fenced = Fenced::start().await?;
    let starting = (0..options.clients)
        .map(|number| Contender::start(number, program, &folder, options, server.port(), fenced.address()));
    let clients = try_join_all(starting).await?;

    let window = u64::try_from(WINDOW.as_nanos())?;
    let limiters = vec![(LIMITER.to_owned(), STARTS, window)];
    let mut account = Account { seed: options.seed, servers: 1, limiters, ..Account::default() };
    let mut rng = StdRng::seed_from_u64(options.seed);
    let (mut faults, mut kinds) = (Vec::new(), Vec::new());
    served(&clients, 0, &mut account).await;
    let end = Instant::now() + Duration::from_secs(options.seconds);
    // Every kind strikes, however slow the machine is.
    while Instant::now() < end || faults.len() < FAULTS.len() {
        if kinds.is_empty() {
            kinds.extend(FAULTS);
            kinds.shuffle(&mut rng);
        }
        let Some(kind) = kinds.pop() else { continue };
        // The pause between two faults: a part of the plan, and no wait for a state.
        sleep(Duration::from_millis(rng.random_range(50..400))).await;
        strike(kind, &mut rng, &clients, &mut server, Duration::from_millis(options.lease)).await?;
        faults.push(kind);
    }
    let healed = clock::now();
    account.healed = Some(healed);
    served(&clients, healed, &mut account).await;
    for client in &clients {
        account.died.extend(client.stop().await?);
    }
    account.orphans = left_behind(&server, Duration::from_millis(options.lease)).await?;
    account.stamps = fenced.entries();
    account.write(&folder)?;
    let history = History::read(&folder)?;
    let violations = checker::judge(&history);
    Ok(RedisVerdict { violations, grants: grants(&history), faults, folder })
}

/// What strikes a client, its link, or the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedisFault {
    /// SIGKILL, and another process in its place.
    ClientKilled,
    /// SIGSTOP for a while.
    ClientStopped,
    /// Its connection breaks.
    LinkCut,
    /// Its connection breaks, and no other one is accepted for a while.
    LinkSevered,
    /// Its connection is silent for a while, in both directions.
    LinkHeldBack,
    /// The connection breaks before the server receives a request.
    RequestLost,
    /// The connection breaks before the client receives a reply.
    ReplyLost,
    /// SIGSTOP for a while.
    ServerStopped,
    /// SIGKILL, and a restart with the data.
    ServerRestarted,
}

const FAULTS: [RedisFault; 9] = [
    RedisFault::ClientKilled,
    RedisFault::ClientStopped,
    RedisFault::LinkCut,
    RedisFault::LinkSevered,
    RedisFault::LinkHeldBack,
    RedisFault::RequestLost,
    RedisFault::ReplyLost,
    RedisFault::ServerStopped,
    RedisFault::ServerRestarted,
];

/// Strikes once, and heals what it struck. The sleeps are the durations of the faults.
async fn strike(
    fault: RedisFault,
    rng: &mut StdRng,
    clients: &[Contender],
    server: &mut RedisServer,
    lease: Duration,
) -> Result<(), Failure> {
    let index = rng.random_range(0..clients.len());
    let client = clients.get(index).ok_or("no client")?;
    // For how long a fault lasts is a part of the plan, and no wait for a state: up to twice the lease, so
    // that some holders lose it.
    let span = lease.mul_f64(rng.random_range(0.05..2.0));
    match fault {
        RedisFault::ClientKilled => {
            client.kill().await?;
            client.revive().await?;
        }
        RedisFault::ClientStopped => {
            client.signal(Signal::STOP).await?;
            sleep(span).await;
            client.signal(Signal::CONT).await?;
        }
        RedisFault::LinkCut => client.proxy.cut(),
        RedisFault::LinkSevered => {
            client.proxy.sever();
            sleep(span).await;
            client.proxy.heal();
        }
        RedisFault::LinkHeldBack => {
            client.proxy.hold();
            sleep(span).await;
            client.proxy.heal();
        }
        RedisFault::RequestLost => client.proxy.arm(Fault::LoseRequest, 0),
        RedisFault::ReplyLost => client.proxy.arm(Fault::LoseReply, 0),
        RedisFault::ServerStopped => {
            server.pause().await?;
            sleep(span).await;
            server.resume().await?;
        }
        RedisFault::ServerRestarted => server.restart().await?,
    }
    Ok(())
}

/// Waits until every client was granted every lock after this instant.
async fn served(clients: &[Contender], after: u64, account: &mut Account) {
    for client in clients {
        for name in NAMES {
            let granted = eventually("a grant", Timing::event() * 2, || async {
                client.last_grant(name).ok().filter(|at| *at > after)
            });
            if granted.await.is_err() {
                account.unserved.push((client.name(), name.to_owned()));
            }
        }
    }
}

/// The keys that are left when all leases of killed processes have ended, besides the tokens.
async fn left_behind(server: &RedisServer, lease: Duration) -> Result<Vec<String>, Failure> {
    let mut raw = server.raw().await?;
    // A queue, and the bookkeeping of permits, end two leases after their last use.
    let end = Instant::now() + lease * 4 + Timing::event();
    loop {
        let mut keys: Vec<String> = ::redis::cmd("KEYS").arg("*").query_async(&mut raw).await?;
        keys.retain(|key| !key.ends_with(":fence"));
        if keys.is_empty() || Instant::now() > end {
            return Ok(keys);
        }
        // Redis tells nobody of a key that has ended, so this asks again.
        sleep(Duration::from_millis(20)).await;
    }
}

fn grants(history: &History) -> BTreeMap<String, usize> {
    let mut grants = BTreeMap::new();
    for hold in history.holds() {
        *grants.entry(hold.lock).or_default() += 1;
    }
    for event in history.processes.values().flatten() {
        if let What::Started { lock, .. } = &event.what {
            *grants.entry(lock.clone()).or_default() += 1;
        }
    }
    grants
}
