//! Random contention between languages while processes of each are killed (`kill -9`): ours are processes, too.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lockkeeper_tests::{CreateMode, Ensemble, Peer, PeerError, RawClient, left_out};
use parking_lot::Mutex as Shared;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::sync::{Mutex as AsyncMutex, watch};
use tokio::task::JoinSet;

use super::fixture::{Failure, Outcome};

/// Short: it is waited out for each one killed.
const SESSION: Duration = Duration::from_secs(2);
/// How often each thread of each process comes in, and how often a process of each language is killed.
const VISITS: usize = 8;
const KILLS: usize = 2;
const THREADS: usize = 2;
/// Of a semaphore.
const LIMIT: usize = 3;

#[derive(Clone, Copy, Debug)]
enum Language {
    Java,
    Kazoo,
    Rust,
}

impl Language {
    async fn start(self, servers: &str) -> Result<Peer, PeerError> {
        match self {
            Self::Java => Peer::java(servers, SESSION).await,
            Self::Kazoo => Peer::kazoo(servers, SESSION).await,
            Self::Rust => Peer::program(Path::new(env!("CARGO_BIN_EXE_contender")), servers, SESSION).await,
        }
    }
}

/// What is taken, and what others may have meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claim {
    Mutex,
    MutexInSemaphoreLayout,
    Read,
    Write,
    Permits(usize),
}

impl Claim {
    /// By one of these on one path.
    fn any_like(self, language: Language, rng: &mut StdRng) -> Self {
        match self {
            Self::Read | Self::Write if rng.random_bool(0.6) => Self::Read,
            Self::Read | Self::Write => Self::Write,
            // Curator takes several one by one, and then two who want several can wait for each other for ever.
            Self::Permits(_) if matches!(language, Language::Java) => Self::Permits(1),
            Self::Permits(_) => Self::Permits(rng.random_range(1..=2)),
            other => other,
        }
    }

    /// The words to take it, and to give it back.
    fn words(self, thread: &str, path: &str) -> (String, String) {
        let words = |take: &str, back: &str| {
            (format!("{take} {thread} {path} -1"), format!("{back} {thread} {path}"))
        };
        match self {
            Self::Mutex => words("acquire", "release"),
            Self::MutexInSemaphoreLayout => words("enter", "leave"),
            Self::Read => words("read", "unread"),
            Self::Write => words("write", "unwrite"),
            Self::Permits(count) => (
                format!("permits {thread} {path} {LIMIT} {count} -1"),
                format!("return {thread} {path} {count}"),
            ),
        }
    }

    fn allows(self, other: Self) -> bool {
        matches!((self, other), (Self::Read, Self::Read) | (Self::Permits(_), Self::Permits(_)))
    }

    fn permits(self) -> usize {
        if let Self::Permits(count) = self { count } else { 0 }
    }
}

/// Who is inside; a register that is read and written there, by a client that belongs to nobody; and the order of grants.
struct Witness {
    inside: Shared<Vec<Claim>>,
    register: String,
    client: AsyncMutex<RawClient>,
    tokens: Shared<Vec<u64>>,
    writes: AtomicUsize,
}

impl Witness {
    async fn visit(&self, claim: Claim, grant: &str, dawdle: usize) -> Outcome {
        {
            let mut inside = self.inside.lock();
            assert!(inside.iter().all(|other| claim.allows(*other)), "{claim:?} beside {inside:?}");
            inside.push(claim);
            let permits: usize = inside.iter().map(|claim| claim.permits()).sum();
            assert!(permits <= LIMIT, "{inside:?}");
            if claim == Claim::Mutex {
                let token = grant.split(' ').next().and_then(|token| token.parse().ok());
                self.tokens.lock().push(token.ok_or("no token")?);
            }
        }
        let before: usize =
            String::from_utf8(self.client.lock().await.data(&self.register).await?.0)?.parse()?;
        for _ in 0..dawdle {
            self.client.lock().await.exists("/").await?;
        }
        let is_alone = !claim.allows(claim);
        if is_alone {
            let after = (before + 1).to_string();
            self.client.lock().await.set_data(&self.register, after.as_bytes()).await?;
            self.writes.fetch_add(1, Ordering::SeqCst);
        } else if claim == Claim::Read {
            let now = self.client.lock().await.data(&self.register).await?.0;
            assert_eq!(now, before.to_string().as_bytes(), "someone wrote beside a reader");
        }
        let mut inside = self.inside.lock();
        let place = inside.iter().position(|other| *other == claim).ok_or("not inside")?;
        inside.swap_remove(place);
        Ok(())
    }
}

/// The process of a language that runs now; killed ones are replaced.
struct Seat {
    language: Language,
    servers: String,
    peer: watch::Sender<Peer>,
    kills: AtomicUsize,
    /// One is killed, and replaced, after the other.
    turn: AsyncMutex<()>,
}

impl Seat {
    /// Kills it while it holds, and starts another one.
    async fn die(&self) -> Outcome {
        let _turn = self.turn.lock().await;
        let peer = self.peer.borrow().clone();
        peer.kill().await?;
        self.peer.send_replace(self.language.start(&self.servers).await?);
        Ok(())
    }

    /// Whether this is the moment for one of the kills that are to be.
    fn is_to_die(&self, rng: &mut StdRng) -> bool {
        rng.random_bool(0.3)
            && self
                .kills
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |kills| kills.checked_sub(1))
                .is_ok()
    }
}

async fn contend(
    seat: Arc<Seat>,
    witness: Arc<Witness>,
    kind: Claim,
    thread: String,
    path: String,
    mut rng: StdRng,
) -> Result<usize, Failure> {
    let mut visits = 0;
    while visits < VISITS {
        let claim = kind.any_like(seat.language, &mut rng);
        let (take, give_back) = claim.words(&thread, &path);
        let mut changed = seat.peer.subscribe();
        let peer = changed.borrow_and_update().clone();
        let grant = match peer.ask(&take).await {
            Ok(grant) => grant,
            // Killed by its other thread: go on in the next process.
            Err(PeerError::Ended { .. }) => {
                changed.changed().await?;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        witness.visit(claim, &grant, rng.random_range(0..4)).await?;
        visits += 1;
        if seat.is_to_die(&mut rng) {
            seat.die().await?;
            continue;
        }
        match peer.ask(&give_back).await {
            Ok(_) | Err(PeerError::Ended { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(visits)
}

async fn with(language: Language, kind: Claim, path: &str) -> Outcome {
    if left_out() {
        return Ok(());
    }
    let seed = std::env::var("LOCKKEEPER_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed: u64 = seed.unwrap_or_else(rand::random);
    println!("to replay the choices: LOCKKEEPER_TEST_SEED={seed}");

    let ensemble = Ensemble::shared().await?;
    let servers = ensemble.connect_string();
    let mut oracle = ensemble.raw().await?;
    let register = format!("{}-register", path.replace('/', "-").replacen('-', "/", 1));
    oracle.create(&register, b"0", CreateMode::Persistent).await?;
    let witness = Arc::new(Witness {
        inside: Shared::default(),
        register: register.clone(),
        client: AsyncMutex::new(ensemble.raw().await?),
        tokens: Shared::default(),
        writes: AtomicUsize::new(0),
    });
    let mut tasks = JoinSet::new();
    let mut seats = Vec::new();
    for language in [language, Language::Rust] {
        let peer = watch::Sender::new(language.start(&servers).await?);
        let servers = servers.clone();
        seats.push(Arc::new(Seat {
            language,
            servers,
            peer,
            kills: AtomicUsize::new(KILLS),
            turn: AsyncMutex::new(()),
        }));
    }
    for (number, seat) in (0..).zip(seats.iter().flat_map(|seat| [seat; THREADS])) {
        let (seat, witness) = (Arc::clone(seat), Arc::clone(&witness));
        let rng = StdRng::seed_from_u64(seed ^ number);
        tasks.spawn(contend(seat, witness, kind, format!("t{number}"), path.to_owned(), rng));
    }
    let mut visits = 0;
    while let Some(ended) = tasks.join_next().await {
        visits += ended??;
    }
    assert_eq!(visits, 2 * THREADS * VISITS);
    let killed: usize = seats.iter().map(|seat| KILLS - seat.kills.load(Ordering::SeqCst)).sum();
    assert!(killed > 0, "nobody was killed");
    let written = String::from_utf8(oracle.data(&register).await?.0)?;
    assert_eq!(written, witness.writes.load(Ordering::SeqCst).to_string(), "a write was lost");
    let tokens = witness.tokens.lock().clone();
    assert!(tokens.is_sorted_by(|earlier, later| earlier < later), "someone overtook");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mutex_is_held_by_one_of_java_and_rust_while_both_are_killed() -> Outcome {
    with(Language::Java, Claim::Mutex, "/interop/kills/java-mutex").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_semaphore_mutex_is_held_by_one_of_java_and_rust_while_both_are_killed() -> Outcome {
    with(Language::Java, Claim::MutexInSemaphoreLayout, "/interop/kills/java-one").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_and_writers_of_java_and_rust_exclude_each_other_while_both_are_killed() -> Outcome {
    with(Language::Java, Claim::Write, "/interop/kills/java-rw").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn permits_of_java_and_rust_stay_within_the_limit_while_both_are_killed() -> Outcome {
    with(Language::Java, Claim::Permits(1), "/interop/kills/java-permits").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mutex_is_held_by_one_of_kazoo_and_rust_while_both_are_killed() -> Outcome {
    with(Language::Kazoo, Claim::Mutex, "/interop/kills/kazoo-mutex").await
}
