//! A server that sends false answers. The library promises only this then: it does not panic or hang, every
//! call ends with its result or a typed error, and when the answers are true again every recipe works.

use std::collections::BTreeSet;
use std::panic;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use lockkeeper::locks::SharedLimit;
use lockkeeper::znodes::CreateMode;
use lockkeeper::{
    ConnectionManager, Error, MultiLock, Mutex, Owner, RateLimiter, ReentrantMutex, RwLock, Semaphore,
};
use lockkeeper_tests::{Ensemble, Lie, Proxies, Timing, eventually};
use tokio::task::JoinSet;

use crate::support::builder;

/// The number of clients at once.
const SEEDS: u64 = 12;
const ROUNDS: usize = 8;
/// How many more batches may follow until the test is not void.
const FURTHER: u64 = 20;
const SHORTLY: Duration = Duration::from_millis(300);

/// Panics outside the client crate, whose own task may panic on false answers; see `docs/architecture.md`.
static PANICS: AtomicUsize = AtomicUsize::new(0);

fn count_panics() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let file = info.location().map_or("", panic::Location::file);
            if file.contains("/zookeeper-client-") {
                return;
            }
            if file.contains("lockkeeper") || file.starts_with("src/") || file.starts_with("recipes/") {
                PANICS.fetch_add(1, Ordering::SeqCst);
            }
            before(info);
        }));
    });
}

type Ended = Result<(), Box<dyn std::error::Error + Send + Sync>>;
type Call = fn(ConnectionManager, String) -> BoxFuture<'static, Ended>;

/// Each recipe, by each of its calls that ends.
const CALLS: [(&str, Call); 9] = [
    ("mutex", |manager, path| {
        Box::pin(async move {
            let mutex = Mutex::new(&manager, format!("{path}/mutex"))?;
            let guard = mutex.acquire_timeout(SHORTLY).await?;
            let register = format!("{path}/register");
            let _refused_or_not = guard.txn().create(register, b"1".to_vec()).commit().await;
            guard.release().await?;
            drop(mutex.try_acquire().await?);
            Ok(())
        })
    }),
    ("mutex in semaphore layout", |manager, path| {
        Box::pin(async move {
            let mutex = Mutex::in_semaphore_layout(&manager, format!("{path}/one"))?;
            mutex.acquire_timeout(SHORTLY).await?.release().await?;
            Ok(())
        })
    }),
    ("reentrant mutex", |manager, path| {
        Box::pin(async move {
            let (mutex, owner) =
                (ReentrantMutex::new(&manager, format!("{path}/reentrant"))?, Owner::new("a"));
            let guard = mutex.acquire_timeout(&owner, SHORTLY).await?;
            drop(mutex.try_acquire(&owner).await?);
            guard.release().await?;
            Ok(())
        })
    }),
    ("rw lock", |manager, path| {
        Box::pin(async move {
            let lock = RwLock::new(&manager, format!("{path}/rw"))?;
            let guard = lock.write_timeout(SHORTLY).await?.downgrade().await?;
            drop(lock.try_read().await?);
            guard.release().await?;
            let reader = lock.read_timeout(SHORTLY).await?;
            drop(reader.try_upgrade().await?);
            Ok(())
        })
    }),
    ("semaphore", |manager, path| {
        Box::pin(async move {
            let semaphore = Semaphore::new(&manager, format!("{path}/semaphore"), 2)?;
            let lease = semaphore.acquire_many_timeout(2, SHORTLY).await?;
            let _told = (semaphore.inspect().await, semaphore.available().await);
            lease.release().await?;
            Ok(())
        })
    }),
    ("shared limit", |manager, path| {
        Box::pin(async move {
            let limit = SharedLimit::new(&manager, format!("{path}/limit"))?;
            limit.set(2).await?;
            let semaphore = Semaphore::new_shared(&manager, format!("{path}/shared"), &limit)?;
            drop(semaphore.acquire_timeout(SHORTLY).await?);
            Ok(())
        })
    }),
    ("rate limiter", |manager, path| {
        Box::pin(async move {
            let limiter = RateLimiter::new(&manager, format!("{path}/rate"), 3, SHORTLY)?;
            let _spent = (limiter.admit_timeout(SHORTLY).await?, limiter.try_admit().await?);
            Ok(())
        })
    }),
    ("several", |manager, path| {
        Box::pin(async move {
            let mutex = Mutex::new(&manager, format!("{path}/mutex"))?;
            let lock = RwLock::new(&manager, format!("{path}/rw"))?;
            let all = MultiLock::builder().lock(&mutex).lock(&lock.reader()).build()?;
            all.acquire_timeout(SHORTLY).await?.release().await.map_err(|errors| format!("{errors:?}"))?;
            Ok(())
        })
    }),
    ("nodes", |manager, path| {
        Box::pin(async move {
            let (node, znodes) = (format!("{path}/node"), manager.znodes());
            let _made_or_not = znodes.create(&node, b"1", CreateMode::Persistent).await;
            let (_, stat) = znodes.read(&node).await?.ok_or("no such node")?;
            znodes.write(&node, b"2", stat.version).await?;
            znodes.children(&node).await?;
            znodes.delete(&node).await?;
            Ok(())
        })
    }),
];

/// One client of a lying server, from its connection to its end.
async fn lied_to(ensemble: &'static Ensemble, seed: u64) -> (Vec<Lie>, usize) {
    let proxies = Proxies::start(ensemble).await.unwrap();
    let path = format!("/lies/{seed}");
    proxies.lie(seed, 8);
    let connect = || {
        builder(&proxies.connect_string())
            .session_timeout(Duration::from_secs(2))
            .operation_timeout(Duration::from_secs(1))
            .connect_deadline(Duration::from_secs(5))
            .connect()
    };
    let mut manager = loop {
        // False answers may also prevent the connection: then `connect` returns an error in time.
        match ends("connect", seed, connect()).await {
            Ok(manager) => break manager,
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    };
    let mut tasks = JoinSet::new();
    for (name, call) in CALLS {
        let (manager, path) = (manager.clone(), path.clone());
        tasks.spawn(async move {
            let mut done = 0;
            for _ in 0..ROUNDS {
                match ends(name, seed, call(manager.clone(), path.clone())).await {
                    Ok(()) => done += 1,
                    Err(error) => assert!(!error.to_string().is_empty()),
                }
            }
            done
        });
    }
    let done = tasks.join_all().await.into_iter().sum();
    let lies = proxies.tell_the_truth();

    // The client works again, at the latest with its next session. A false transaction id above all others
    // cannot be told from servers that went back: this manager grants nothing more then, and the next one
    // does.
    if !works_again(ensemble, &manager, seed).await {
        manager.shutdown().await.ok();
        manager = ends("connect", seed, connect()).await.unwrap();
        assert!(works_again(ensemble, &manager, seed).await, "seed {seed}: a new manager that saw no lie");
    }
    // The close may end without an answer if the client's session is not the one that the server knows.
    let closed = ends("shutdown", seed, manager.shutdown()).await;
    assert!(matches!(closed, Ok(()) | Err(Error::Timeout { .. })), "seed {seed}: {closed:?}");
    eventually(format!("no node of seed {seed} is left"), Timing::settle(), || async {
        let dump = ensemble.server(0).dump().await.ok()?;
        let below = format!("{path}/");
        let is_left = dump.ephemerals.values().flatten().any(|node| node.starts_with(&below));
        (!is_left).then_some(())
    })
    .await
    .unwrap();
    (lies, done)
}

/// Waits until a lock is granted. Returns `false` if the manager believes that the servers went back.
async fn works_again(ensemble: &Ensemble, manager: &ConnectionManager, seed: u64) -> bool {
    let mutex = Mutex::new(manager, format!("/lies/{seed}/mutex")).unwrap();
    let last = parking_lot::Mutex::new(String::new());
    let decided = eventually("the mutex is granted again", Timing::scaled(Duration::from_secs(30)), || {
        let again = ends("acquire", seed, mutex.acquire_timeout(Duration::from_secs(2)));
        let last = &last;
        async move {
            match again.await {
                Ok(guard) => ends("release", seed, guard.release()).await.ok().map(|()| true),
                Err(Error::ServersReset { .. }) => Some(false),
                Err(error) => {
                    *last.lock() = error.to_string();
                    None
                }
            }
        }
    });
    match decided.await {
        Ok(works) => works,
        Err(_) => {
            let dump = ensemble.server(0).dump().await.unwrap();
            panic!("seed {seed}: not working again, {}: {}; {dump:#?}", manager.state(), last.lock());
        }
    }
}

/// No call takes longer than some unanswered requests and a session.
async fn ends<T>(name: &str, seed: u64, call: impl Future<Output = T>) -> T {
    let limit = Timing::scaled(Duration::from_secs(30));
    tokio::time::timeout(limit, call).await.unwrap_or_else(|_| panic!("{name} hangs, seed {seed}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn false_answers_cause_no_panic_and_no_hang_and_true_answers_restore_every_recipe() {
    count_panics();
    let ensemble = Ensemble::shared().await.unwrap();
    let is_soak = std::env::var_os("LOCKKEEPER_SOAK").is_some();
    let first = std::env::var("LOCKKEEPER_TEST_SEED").ok().and_then(|seed| seed.parse::<u64>().ok());
    let batches = if is_soak { 20 } else { 1 };
    let (mut lies_told, mut kinds, mut done) = (0, BTreeSet::new(), 0);
    for batch in 0.. {
        let before = PANICS.load(Ordering::SeqCst);
        let begin = first.unwrap_or_default() + batch * SEEDS;
        let clients: JoinSet<_> = (begin..begin + SEEDS).map(|seed| lied_to(ensemble, seed)).collect();
        let ended = clients.join_all().await;
        assert_eq!(PANICS.load(Ordering::SeqCst), before, "the library panicked");
        for (lies, calls) in ended {
            lies_told += lies.len();
            kinds.extend(lies);
            done += calls;
        }
        // The test is void without many lies, some of every kind, and calls that succeed nevertheless. How
        // many there are in a batch is chance, and on a busy machine they are fewer.
        let is_void = lies_told <= 300 || kinds.len() < 9 || done <= 20;
        if batch + 1 >= batches && !is_void {
            break;
        }
        assert!(batch < batches + FURTHER, "{lies_told} lies, of {kinds:?}; {done} calls done");
    }
}
