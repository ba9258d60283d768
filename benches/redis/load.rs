//! The loads, for any library: see `benches/README.md`. Also built into `benches/redis-peer`.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures::future::try_join_all;
use hdrhistogram::Histogram;
use lockkeeper_lock::BootInstant;
use tokio::sync::Mutex;

/// What keeps a load from being run.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

const USAGE: &str = "usage: URL PEER uncontended|handoff key=value…
  uncontended n=1000 warmn=200   one connection, one lock: taken and released n times
  handoff w=10 s=2 t=5           w tasks on one lock over s connections, for t seconds";

/// The key of the lock.
pub(crate) const KEY: &str = "lockkeeper-redis-bench";
/// How long the server keeps the lock of a client that says nothing.
pub(crate) const LEASE: Duration = Duration::from_secs(30);

/// A connection by one library, with one lock.
pub(crate) trait Peer: Sized + Send + Sync + 'static {
    /// Which of the libraries that the program has.
    type Kind: Copy + Send;
    /// A held lock.
    type Held: Send;

    /// The library of this name.
    fn kind(name: &str) -> Result<Self::Kind, Failure>;

    fn connect(url: &str, kind: Self::Kind) -> impl Future<Output = Result<Self, Failure>> + Send;

    fn acquire(&self) -> impl Future<Output = Result<Self::Held, Failure>> + Send;

    fn release(&self, held: Self::Held) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// Runs the load that the command line names, and prints it as one line of JSON.
pub(crate) async fn run<P: Peer>() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [url, peer, scenario, rest @ ..] = words.as_slice() else { return Err(USAGE.into()) };
    let kind = P::kind(peer)?;
    let before = cpu();
    let measured = match scenario.as_str() {
        "uncontended" => uncontended::<P>(url, kind, &Keys::read(rest, &["n", "warmn"])?).await?,
        "handoff" => handoff::<P>(url, kind, &Keys::read(rest, &["w", "s", "t"])?).await?,
        _ => return Err(USAGE.into()),
    };
    let Measured { acquire, release, elapsed, changes } = &measured;
    let ops = acquire.len();
    let micros = |span: Duration| span.as_secs_f64() * 1e6;
    let quantile = |of: &Histogram<u64>, at: f64| of.value_at_quantile(at) as f64 / 1e3;
    println!(
        "{}",
        serde_json::json!({
            "peer": peer, "scenario": scenario, "params": rest,
            "ops": ops, "elapsed_s": elapsed.as_secs_f64(), "ops_s": ops as f64 / elapsed.as_secs_f64(),
            "changes_s": *changes as f64 / elapsed.as_secs_f64(),
            "acq_p50_us": quantile(acquire, 0.5), "acq_p99_us": quantile(acquire, 0.99),
            "rel_p50_us": quantile(release, 0.5), "rel_p99_us": quantile(release, 0.99),
            // Of this process, for the whole run.
            "cli_cpu_us_op": micros(cpu().saturating_sub(before)) / ops.max(1) as f64,
        })
    );
    Ok(())
}

/// What a load has measured.
#[derive(Debug)]
struct Measured {
    acquire: Histogram<u64>,
    release: Histogram<u64>,
    elapsed: Duration,
    /// How often the lock went to another task than before.
    changes: u64,
}

/// The numbers on the command line.
#[derive(Debug)]
struct Keys(BTreeMap<String, u64>);

impl Keys {
    fn read(words: &[String], known: &[&str]) -> Result<Self, Failure> {
        let mut keys = BTreeMap::new();
        for word in words {
            let (key, value) = word.split_once('=').ok_or(USAGE)?;
            if !known.contains(&key) {
                return Err(format!("{key} is no key of this scenario\n{USAGE}").into());
            }
            keys.insert(key.to_owned(), value.parse()?);
        }
        Ok(Self(keys))
    }

    fn number(&self, key: &str, default: u64) -> u64 {
        self.0.get(key).copied().unwrap_or(default)
    }
}

/// The processor time of this process.
fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

async fn uncontended<P: Peer>(url: &str, kind: P::Kind, keys: &Keys) -> Result<Measured, Failure> {
    let peer = P::connect(url, kind).await?;
    let (mut acquire, mut release) = (Histogram::new(3)?, Histogram::new(3)?);
    for _ in 0..keys.number("warmn", 200) {
        let held = peer.acquire().await?;
        peer.release(held).await?;
    }
    let begun = BootInstant::now();
    for _ in 0..keys.number("n", 1_000) {
        let asked = BootInstant::now();
        let held = peer.acquire().await?;
        let taken = BootInstant::now();
        peer.release(held).await?;
        acquire.record(nanos(taken.since(asked)))?;
        release.record(nanos(BootInstant::now().since(taken)))?;
    }
    Ok(Measured { acquire, release, elapsed: BootInstant::now().since(begun), changes: 0 })
}

async fn handoff<P: Peer>(url: &str, kind: P::Kind, keys: &Keys) -> Result<Measured, Failure> {
    let (tasks, connections) = (keys.number("w", 10), keys.number("s", 2).max(1));
    let peers = try_join_all((0..connections).map(|_| P::connect(url, kind))).await?;
    let peers: Vec<Arc<P>> = peers.into_iter().map(Arc::new).collect();
    let over = Arc::new(AtomicBool::new(false));
    let inside = Arc::new(AtomicU64::new(0));
    // The task that held the lock last, and how often that was another one than before.
    let (last, changes) = (Arc::new(AtomicU64::new(u64::MAX)), Arc::new(AtomicU64::new(0)));
    let times = Arc::new(Mutex::new((Histogram::new(3)?, Histogram::new(3)?)));
    let begun = BootInstant::now();
    let workers = (0..tasks).map(|number| {
        let index = usize::try_from(number % connections).unwrap_or_default();
        let peer = peers.get(index).cloned();
        let (over, inside, times) = (Arc::clone(&over), Arc::clone(&inside), Arc::clone(&times));
        let (last, changes) = (Arc::clone(&last), Arc::clone(&changes));
        tokio::spawn(async move {
            let peer = peer.ok_or("no connection")?;
            while !over.load(Ordering::Relaxed) {
                let asked = BootInstant::now();
                let held = peer.acquire().await?;
                let taken = BootInstant::now();
                if inside.fetch_add(1, Ordering::SeqCst) != 0 {
                    return Err(Failure::from("two holders at a time"));
                }
                if last.swap(number, Ordering::SeqCst) != number {
                    changes.fetch_add(1, Ordering::SeqCst);
                }
                inside.fetch_sub(1, Ordering::SeqCst);
                peer.release(held).await?;
                let mut times = times.lock().await;
                times.0.record(nanos(taken.since(asked)))?;
                times.1.record(nanos(BootInstant::now().since(taken)))?;
            }
            Ok(())
        })
    });
    let workers: Vec<_> = workers.collect();
    tokio::time::sleep(Duration::from_secs(keys.number("t", 5))).await;
    over.store(true, Ordering::Relaxed);
    for worker in workers {
        worker.await??;
    }
    let elapsed = BootInstant::now().since(begun);
    let times = times.lock().await;
    let changes = changes.load(Ordering::SeqCst);
    Ok(Measured { acquire: times.0.clone(), release: times.1.clone(), elapsed, changes })
}
