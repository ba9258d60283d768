//! Java Curator's own `InterProcessMutex` and our mutexes are one lock.
//!
//! These need Debian's packages `libcurator-recipes-java` and `default-jdk-headless` besides `zookeeper`.

use std::error::Error as StdError;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{env, fs};

use futures::future::try_join_all;
use lockkeeper::{ConnectionManager, Error, Mutex, OwnedMutexGuard, Owner, Phase, ReentrantMutex};
use lockkeeper_tests::{
    CreateMode, CuratorGrant, CuratorPeer, CuratorThread, Ensemble, HarnessError, Proxies, RawClient, Timing,
    eventually, left_out,
};
use parking_lot::Mutex as Shared;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio::sync::{Mutex as AsyncMutex, mpsc};

use crate::support::connect;

type Failure = Box<dyn StdError + Send + Sync>;
type Outcome = Result<(), Failure>;

/// Long enough for a Java process on a busy machine, short enough to wait for its end.
const SESSION: Duration = Duration::from_secs(4);

/// Enough for a server to answer many times, and not to be granted what is held.
const SHORTLY: Duration = Duration::from_millis(300);

/// A server, a Java service and ours, a path for both, and a client that belongs to neither.
struct Scene {
    ensemble: &'static Ensemble,
    java: CuratorPeer,
    manager: ConnectionManager,
    path: String,
    oracle: AsyncMutex<RawClient>,
}

impl Scene {
    /// On the server that all these tests share, at a path of the test's own.
    async fn at(path: &str) -> Result<Self, Failure> {
        let ensemble = Ensemble::shared().await?;
        let java = CuratorPeer::start(&ensemble.connect_string(), SESSION).await?;
        let manager = connect(&ensemble.connect_string()).await;
        let oracle = AsyncMutex::new(ensemble.raw().await?);
        Ok(Self { ensemble, java, manager, path: path.to_owned(), oracle })
    }

    fn mutex(&self) -> Mutex {
        Mutex::new(&self.manager, &self.path).unwrap()
    }

    fn rust(&self) -> Contender {
        Contender::Rust(self.mutex())
    }

    fn java(&self, thread: &str) -> Contender {
        Contender::Java(self.java.thread(thread), self.path.clone())
    }

    /// Waits until so many stand in line; yields the paths of their nodes, the first in line first.
    async fn line_of(&self, contenders: usize) -> Result<Vec<String>, HarnessError> {
        line_of(self.ensemble, &self.path, contenders).await
    }
}

/// Asks the server itself, so that it depends on no client.
async fn line_of(ensemble: &Ensemble, path: &str, contenders: usize) -> Result<Vec<String>, HarnessError> {
    let below = format!("{path}/");
    eventually(format!("{contenders} stand in line at {path}"), Timing::event(), async || {
        let dump = ensemble.server(0).dump().await.ok()?;
        let mut line: Vec<String> =
            dump.ephemerals.into_values().flatten().filter(|node| node.starts_with(&below)).collect();
        line.sort_by_key(|node| node[node.len() - 10..].to_owned());
        (line.len() == contenders).then_some(line)
    })
    .await
}

/// Someone who wants the lock, in either language.
#[derive(Clone)]
enum Contender {
    Java(CuratorThread, String),
    Rust(Mutex),
}

/// The lock in someone's hands.
enum Hold {
    Java(CuratorThread, String, CuratorGrant),
    Rust(OwnedMutexGuard),
}

impl Contender {
    async fn acquire(&self) -> Result<Hold, Failure> {
        Ok(match self {
            Self::Java(thread, path) => Hold::of_java(thread, path, thread.acquire(path).await?),
            Self::Rust(mutex) => Hold::Rust(mutex.acquire_owned().await?),
        })
    }

    async fn acquire_timeout(&self, timeout: Duration) -> Result<Option<Hold>, Failure> {
        match self {
            Self::Java(thread, path) => {
                let grant = thread.acquire_timeout(path, timeout).await?;
                Ok(grant.map(|grant| Hold::of_java(thread, path, grant)))
            }
            Self::Rust(mutex) => match mutex.acquire_owned_timeout(timeout).await {
                Ok(guard) => Ok(Some(Hold::Rust(guard))),
                Err(error) if error.is_timeout() => Ok(None),
                Err(error) => Err(error.into()),
            },
        }
    }
}

impl Hold {
    fn of_java(thread: &CuratorThread, path: &str, grant: CuratorGrant) -> Self {
        Self::Java(thread.clone(), path.to_owned(), grant)
    }

    fn token(&self) -> u64 {
        match self {
            Self::Java(.., grant) => grant.czxid,
            Self::Rust(guard) => guard.fencing_token().as_u64(),
        }
    }

    async fn release(self) -> Outcome {
        match self {
            Self::Java(thread, path, _) => thread.release(&path).await?,
            Self::Rust(guard) => guard.release().await?,
        }
        Ok(())
    }
}

#[tokio::test]
async fn while_java_holds_we_do_not_get_in() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let scene = Scene::at("/interop/java-holds").await?;
    let (mutex, thread) = (scene.mutex(), scene.java.thread("holder"));
    let reentrant = ReentrantMutex::new(&scene.manager, &scene.path)?;
    let grant = thread.acquire(&scene.path).await?;

    assert!(mutex.try_acquire().await?.is_none());
    assert!(reentrant.try_acquire(&Owner::new("o")).await?.is_none());
    assert!(mutex.acquire_timeout(SHORTLY).await.unwrap_err().is_timeout());
    assert_eq!(scene.line_of(1).await?, [grant.node], "a try in vain leaves no node");

    thread.release(&scene.path).await?;
    let guard = mutex.try_acquire().await?.expect("free");
    assert!(guard.fencing_token().as_u64() > grant.czxid);
    guard.release().await?;
    Ok(())
}

#[tokio::test]
async fn while_we_hold_java_does_not_get_in() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let scene = Scene::at("/interop/rust-holds").await?;
    let thread = scene.java.thread("waiter");
    let guard = scene.mutex().acquire_owned().await?;

    assert_eq!(thread.acquire_timeout(&scene.path, Duration::ZERO).await?, None);
    assert_eq!(thread.acquire_timeout(&scene.path, SHORTLY).await?, None);
    assert!(guard.is_valid());
    assert_eq!(scene.line_of(1).await?, [guard.path()]);

    let token = guard.fencing_token().as_u64();
    guard.release().await?;
    let grant = thread.acquire_timeout(&scene.path, Duration::ZERO).await?.expect("free");
    assert!(grant.czxid > token);
    Ok(())
}

#[tokio::test]
async fn java_and_rust_stand_in_one_line() -> Outcome {
    if left_out() {
        return Ok(());
    }
    for holder_is_java in [true, false] {
        let scene = Scene::at(&format!("/interop/fifo-behind-java-{holder_is_java}")).await?;
        let holder = if holder_is_java { scene.java("holder") } else { scene.rust() };
        let mut hold = holder.acquire().await?;
        let (granted, mut grants) = mpsc::unbounded_channel();
        let line =
            [scene.java("a"), scene.rust(), scene.java("b"), scene.rust(), scene.java("c"), scene.rust()];
        for (place, contender) in line.into_iter().enumerate() {
            let granted = granted.clone();
            tokio::spawn(async move { granted.send((place, contender.acquire().await)).ok() });
            scene.line_of(place + 2).await?;
        }
        for expected in 0..6 {
            let token = hold.token();
            assert!(grants.is_empty(), "someone was granted what is held");
            hold.release().await?;
            let (place, next) = grants.recv().await.expect("the next in line");
            assert_eq!(place, expected);
            hold = next?;
            assert!(hold.token() > token);
        }
        hold.release().await?;
        scene.line_of(0).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_killed_java_holder_makes_way_when_its_session_ends() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let scene = Scene::at("/interop/java-dies").await?;
    let grant = scene.java.thread("holder").acquire(&scene.path).await?;
    let mutex = scene.mutex();
    let waiter = tokio::spawn(async move { mutex.acquire_owned().await });
    scene.line_of(2).await?;

    scene.java.kill().await?;
    let guard = waiter.await??;
    let dump = scene.ensemble.server(0).dump().await?;
    assert!(!dump.sessions.contains(&scene.java.session()), "granted before the holder's session ended");
    assert!(guard.fencing_token().as_u64() > grant.czxid);
    guard.release().await?;
    Ok(())
}

#[tokio::test]
async fn a_java_waiter_that_is_killed_does_not_let_the_next_one_in() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let scene = Scene::at("/interop/java-waiter-dies").await?;
    let guard = scene.mutex().acquire_owned().await?;
    let doomed = scene.java("waiter");
    let doomed = tokio::spawn(async move { doomed.acquire().await.map(drop) });
    scene.line_of(2).await?;
    let mutex = scene.mutex();
    let waiter = tokio::spawn(async move { mutex.acquire_owned().await });
    scene.line_of(3).await?;

    scene.java.kill().await?;
    assert!(doomed.await?.is_err());
    let line = scene.line_of(2).await?;
    assert_eq!(line[0], guard.path());
    assert!(guard.is_valid() && !waiter.is_finished());
    guard.release().await?;
    assert_eq!(waiter.await??.path(), line[1]);
    Ok(())
}

#[tokio::test]
async fn a_severed_guard_is_lost_before_java_is_granted() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let scene = Scene::at("/interop/rust-dies").await?;
    let proxies = Proxies::start(scene.ensemble).await?;
    let severed = connect(&proxies.connect_string()).await;
    let guard = Mutex::new(&severed, &scene.path)?.acquire_owned().await?;
    let waiter = scene.java("waiter");
    let waiter = tokio::spawn(async move { waiter.acquire().await });
    scene.line_of(2).await?;

    let order = Shared::new(Vec::new());
    let lost = async {
        let lost = guard.lost().await;
        order.lock().push("lost");
        Ok(lost)
    };
    let granted = async {
        let hold = waiter.await?;
        order.lock().push("granted");
        hold
    };
    let session = proxies.sessions()[0].id;
    let expired = async { Ok(proxies.sever_until_expired(session).await?) };
    let (_lost, hold, ()) = tokio::try_join!(lost, granted, expired)?;
    assert_eq!(*order.lock(), ["lost", "granted"]);
    assert!(hold.token() > guard.fencing_token().as_u64());
    assert!(!guard.is_valid());
    assert!(guard.release().await.is_err(), "a release of what was lost says so");
    hold.release().await
}

/// What the lock protects, and what notices when it does not.
struct Witness {
    inside: AtomicBool,
    register: String,
    /// Used by one at a time, but for each request alone: it protects nothing.
    client: AsyncMutex<RawClient>,
    /// In the order of the grants.
    tokens: Shared<Vec<u64>>,
}

impl Witness {
    /// Reads the register, dawdles, and writes it: whoever else does so meanwhile makes a visit go uncounted.
    async fn visit(&self, token: u64, dawdle: usize) -> Outcome {
        assert!(!self.inside.swap(true, Ordering::SeqCst), "two inside at once");
        self.tokens.lock().push(token);
        let visits = self.visits().await?;
        for _ in 0..dawdle {
            self.client.lock().await.exists("/").await?;
        }
        let visits = (visits + 1).to_string();
        self.client.lock().await.set_data(&self.register, visits.as_bytes()).await?;
        assert!(self.inside.swap(false, Ordering::SeqCst), "two inside at once");
        Ok(())
    }

    async fn visits(&self) -> Result<usize, Failure> {
        let (visits, _) = self.client.lock().await.data(&self.register).await?;
        Ok(String::from_utf8(visits)?.parse()?)
    }
}

/// Of this many in each language, each comes in this often.
const CONTENDERS: usize = 3;
const VISITS: usize = 15;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_random_contention_one_is_inside_and_grants_follow_the_line() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let seed = env::var("LOCKKEEPER_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed: u64 = seed.unwrap_or_else(rand::random);
    println!("to replay the choices: LOCKKEEPER_TEST_SEED={seed}");

    let scene = Scene::at("/interop/random").await?;
    let register = "/interop-register".to_owned();
    scene.oracle.lock().await.create(&register, b"0", CreateMode::Persistent).await?;
    let witness = Arc::new(Witness {
        inside: AtomicBool::new(false),
        register,
        client: AsyncMutex::new(scene.ensemble.raw().await?),
        tokens: Shared::new(Vec::new()),
    });
    let contenders =
        (0..CONTENDERS).flat_map(|number| [scene.java(&format!("thread-{number}")), scene.rust()]);
    let tasks = contenders.zip(0..).map(|(contender, number)| {
        let witness = Arc::clone(&witness);
        tokio::spawn(contend(contender, witness, StdRng::seed_from_u64(seed ^ number)))
    });
    for outcome in try_join_all(tasks).await? {
        outcome?;
    }
    assert_eq!(witness.visits().await?, 2 * CONTENDERS * VISITS);
    assert!(witness.tokens.lock().is_sorted_by(|earlier, later| earlier < later), "someone overtook");
    scene.line_of(0).await?;
    Ok(())
}

async fn contend(contender: Contender, witness: Arc<Witness>, mut random: StdRng) -> Outcome {
    let mut visits = 0;
    while visits < VISITS {
        let hold = if random.random_bool(0.3) {
            contender.acquire_timeout(Duration::from_millis(random.random_range(0..60))).await?
        } else {
            Some(contender.acquire().await?)
        };
        if let Some(hold) = hold {
            witness.visit(hold.token(), random.random_range(0..4)).await?;
            hold.release().await?;
            visits += 1;
        }
    }
    Ok(())
}

#[tokio::test]
async fn each_reads_the_others_nodes() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let scene = Scene::at("/interop/nodes").await?;
    let holder = scene.java.thread("holder");
    let grant = holder.acquire(&scene.path).await?;
    let mutex = scene.mutex().node_data("the train office");
    let mut waiter = tokio::spawn(async move { mutex.acquire_owned().await });
    let line = scene.line_of(2).await?;

    // Curator sorts our node where it belongs, and reads what it says.
    assert_eq!(line[0], grant.node);
    assert_eq!(scene.java.participants(&scene.path).await?, line);
    assert_eq!(scene.java.data(&line[1]).await?, "the train office");

    // We name Curator's node to those who wait in vain, with what it says.
    waiter.abort();
    assert!((&mut waiter).await.unwrap_err().is_cancelled());
    scene.line_of(1).await?;
    let error = scene.mutex().acquire_timeout(SHORTLY).await.unwrap_err();
    let Error::Timeout { phase: Phase::InLine { behind, who, ahead }, .. } = error else { panic!("{error}") };
    let (data, _) = scene.oracle.lock().await.data(&grant.node).await?;
    assert_eq!(format!("{}/{behind}", scene.path), grant.node);
    assert_eq!((who.as_bytes(), ahead), (&data[..], 1), "Curator's node data is the host's address");
    holder.release(&scene.path).await?;
    Ok(())
}

#[tokio::test]
async fn directories_of_either_are_containers_and_once_reaped_are_made_anew_by_the_other() -> Outcome {
    if left_out() {
        return Ok(());
    }
    // A server tells no client which nodes are containers; but it removes no other kind.
    let ensemble = Ensemble::builder().property("znode.container.checkIntervalMs", "100").start().await?;
    let java = CuratorPeer::start(&ensemble.connect_string(), SESSION).await?;
    let manager = connect(&ensemble.connect_string()).await;
    let path = "/reaped/deep/lock";
    let contenders =
        [Contender::Java(java.thread("a"), path.into()), Contender::Rust(Mutex::new(&manager, path)?)];
    let oracle = AsyncMutex::new(ensemble.raw().await?);
    let mut token = 0;
    for contender in contenders.iter().cycle().take(4) {
        let hold = contender.acquire().await?;
        assert!(hold.token() > token, "tokens go on where sequence numbers begin anew");
        token = hold.token();
        hold.release().await?;
        eventually("the directories are reaped", Timing::event(), async || {
            oracle.lock().await.exists("/reaped").await.ok()?.is_none().then_some(())
        })
        .await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_reentrant_hold_keeps_the_other_out_until_its_last_release() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let scene = Scene::at("/interop/reentrant").await?;
    let mutex = ReentrantMutex::new(&scene.manager, &scene.path)?;
    let (owner, thread) = (Owner::new("order 4711"), scene.java.thread("a"));

    let outer = mutex.acquire(&owner).await?;
    let inner = mutex.acquire(&owner).await?;
    assert_eq!(thread.acquire_timeout(&scene.path, Duration::ZERO).await?, None);
    inner.release().await?;
    assert_eq!(thread.acquire_timeout(&scene.path, Duration::ZERO).await?, None);
    let waiter = tokio::spawn({
        let (thread, path) = (thread.clone(), scene.path.clone());
        async move { thread.acquire(&path).await }
    });
    let line = scene.line_of(2).await?;
    assert!(scene.java.data(&line[0]).await?.ends_with("owner=order 4711"));
    outer.release().await?;
    let grant = waiter.await??;
    assert_eq!(grant.node, line[1]);

    assert_eq!(thread.acquire(&scene.path).await?, grant, "the same hold");
    thread.release(&scene.path).await?;
    assert!(mutex.try_acquire(&owner).await?.is_none());
    thread.release(&scene.path).await?;
    assert!(mutex.try_acquire(&owner).await?.is_some());
    Ok(())
}

#[tokio::test]
async fn below_one_chroot_both_mean_the_same_lock() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ensemble = Ensemble::shared().await?;
    ensemble.raw().await?.create("/interop-chroot", b"", CreateMode::Persistent).await?;
    let servers = format!("{}/interop-chroot", ensemble.connect_string());
    let java = CuratorPeer::start(&servers, SESSION).await?;
    let manager = connect(&servers).await;
    let guard = Mutex::new(&manager, "/lock")?.acquire_owned().await?;
    assert_eq!(java.thread("a").acquire_timeout("/lock", Duration::ZERO).await?, None);
    let inside = guard.path().strip_prefix("/interop-chroot").expect("below the chroot").to_owned();
    assert_eq!(java.participants("/lock").await?, [inside]);
    Ok(())
}

#[tokio::test]
async fn contenders_of_go_and_kazoo_stand_in_our_line() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ensemble = Ensemble::shared().await?;
    let manager = connect(&ensemble.connect_string()).await;
    let mutex = Mutex::new(&manager, "/interop/foreign")?;
    mutex.acquire().await?.release().await?;
    let mut foreign = ensemble.raw().await?;
    for name in
        ["_c_6f9619ff8b864d11b42d00cf4fc964ff-lock-", "6f9619ff8b864d11b42d00cf4fc964ff__lock__", "lock-"]
    {
        let node = format!("/interop/foreign/{name}");
        let (node, stat) = foreign.create(&node, b"", CreateMode::EphemeralSequential).await?;
        assert!(mutex.try_acquire().await?.is_none(), "{node}");
        line_of(ensemble, "/interop/foreign", 1).await?;
        let waiter = tokio::spawn({
            let mutex = mutex.clone();
            async move { mutex.acquire_owned().await }
        });
        line_of(ensemble, "/interop/foreign", 2).await?;
        assert!(!waiter.is_finished());
        foreign.delete(&node).await?;
        let guard = waiter.await??;
        assert!(guard.fencing_token().as_u64() > stat.czxid.cast_unsigned());
        guard.release().await?;
    }
    Ok(())
}

#[tokio::test]
async fn another_kind_of_lock_on_the_path_is_reported_and_left_alone() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ensemble = Ensemble::shared().await?;
    let manager = connect(&ensemble.connect_string()).await;
    let mutex = Mutex::new(&manager, "/interop/mixed")?;
    mutex.acquire().await?.release().await?;
    let mut foreign = ensemble.raw().await?;
    for name in ["__WRIT__", "__READ__", "lease-"] {
        let node = format!("/interop/mixed/_c_6f9619ff-8b86-4d11-b42d-00cf4fc964ff-{name}");
        let (node, _) = foreign.create(&node, b"", CreateMode::EphemeralSequential).await?;
        for error in [mutex.try_acquire().await.unwrap_err(), mutex.acquire().await.unwrap_err()] {
            let Error::MixedKinds { path, child } = error else { panic!("{error}") };
            assert_eq!((format!("{path}/{child}"), &path[..]), (node.clone(), "/interop/mixed"));
        }
        assert_eq!(line_of(ensemble, "/interop/mixed", 1).await?, [node.clone()], "ours are taken back");
        foreign.delete(&node).await?;
        mutex.acquire().await?.release().await?;
    }
    Ok(())
}

/// What the victim says before the number of its Java process, among what the test runner says.
const JAVA_IS: &str = "java is ";

/// Not a test: the process that [`a_java_peer_dies_with_the_process_that_started_it`] starts and kills.
#[tokio::test]
#[ignore = "started by another test"]
async fn victim() -> Outcome {
    let Ok(servers) = env::var("LOCKKEEPER_VICTIM_SERVERS") else { return Ok(()) };
    let java = CuratorPeer::start(&servers, SESSION).await?;
    println!("{JAVA_IS}{}", java.pid().await.expect("a process"));
    std::future::pending().await
}

#[tokio::test]
async fn a_java_peer_dies_with_the_process_that_started_it() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ensemble = Ensemble::shared().await?;
    let mut victim = Command::new(env::current_exe()?)
        .args(["--ignored", "--exact", "--nocapture", "interop::victim"])
        .env("LOCKKEEPER_VICTIM_SERVERS", ensemble.connect_string())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut lines = BufReader::new(victim.stdout.take().expect("its output")).lines();
    let java = loop {
        let line = lines.next_line().await?.expect("the number of the Java process");
        // The runner may have begun the line with the name of the test.
        if let Some((_, java)) = line.split_once(JAVA_IS) {
            break java.to_owned();
        }
    };
    let lives = || {
        // A zombie, which nobody has reaped yet, has no command line.
        fs::read_to_string(format!("/proc/{java}/cmdline")).is_ok_and(|line| line.contains("CuratorPeer"))
    };
    assert!(lives());
    victim.kill().await?;
    eventually("the Java process is gone", Timing::signal(), async || (!lives()).then_some(())).await?;
    Ok(())
}
