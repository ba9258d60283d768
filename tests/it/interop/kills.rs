//! Random contention between languages while processes of each are killed (`kill -9`), ours as well.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lockkeeper_tests::{CreateMode, Ensemble, PeerError, RawClient, left_out};
use parking_lot::Mutex as Shared;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::sync::Mutex as AsyncMutex;
use tokio::task::JoinSet;

use super::fixture::{Failure, Outcome, chosen_seed};
use super::peer_slot::{Language, PeerSlot};

/// Short: the test waits for it after each kill.
const SESSION: Duration = Duration::from_secs(2);
/// The acquires of each thread of each process, and the kills of each language.
const VISITS: usize = 8;
const KILLS: usize = 2;
const THREADS: usize = 2;
/// The permits of the semaphore.
const LIMIT: u32 = 3;

/// What a thread acquires, and which holds may exist beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claim {
    Mutex,
    MutexInSemaphoreLayout,
    Latch,
    Selector,
    Read,
    Write,
    Permits(u32),
}

impl Claim {
    /// A random claim of the same recipe.
    fn any_like(self, language: Language, rng: &mut StdRng) -> Self {
        match self {
            Self::Read | Self::Write if rng.random_bool(0.6) => Self::Read,
            Self::Read | Self::Write => Self::Write,
            // Curator acquires several permits one by one, so two such requests can deadlock.
            Self::Permits(_) if matches!(language, Language::Java) => Self::Permits(1),
            Self::Permits(_) => Self::Permits(rng.random_range(1..=2)),
            other => other,
        }
    }

    /// The verbs to acquire and to release it.
    fn words(self, thread: &str, path: &str) -> (String, String) {
        let words = |take: &str, back: &str| {
            (format!("{take} {thread} {path} -1"), format!("{back} {thread} {path}"))
        };
        match self {
            Self::Mutex => words("acquire", "release"),
            Self::MutexInSemaphoreLayout => words("enter", "leave"),
            Self::Latch => words("latch", "unlatch"),
            Self::Selector => words("select", "unselect"),
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

    fn permits(self) -> u32 {
        if let Self::Permits(count) = self { count } else { 0 }
    }
}

/// The current holds; a register that the holders read and write through a raw client; and the order of the
/// grants.
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
            let permits: u32 = inside.iter().map(|claim| claim.permits()).sum();
            assert!(permits <= LIMIT, "{inside:?}");
            if matches!(claim, Claim::Mutex | Claim::Latch | Claim::Selector) {
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
            assert_eq!(now, before.to_string().as_bytes(), "a write beside a reader");
        }
        let mut inside = self.inside.lock();
        let index = inside.iter().position(|other| *other == claim).ok_or("not inside")?;
        inside.swap_remove(index);
        Ok(())
    }
}

async fn contend(
    slot: Arc<PeerSlot>,
    witness: Arc<Witness>,
    kind: Claim,
    thread: String,
    path: String,
    mut rng: StdRng,
) -> Result<usize, Failure> {
    let mut visits = 0;
    while visits < VISITS {
        let claim = kind.any_like(slot.language(), &mut rng);
        let (take, give_back) = claim.words(&thread, &path);
        let (peer, mut replaced) = slot.peer();
        let grant = match peer.ask(&take).await {
            Ok(grant) => grant,
            // The process was killed by its other thread: continue in the next process.
            Err(PeerError::Ended { .. }) => {
                replaced.changed().await?;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        witness.visit(claim, &grant, rng.random_range(0..4)).await?;
        visits += 1;
        if slot.is_to_die(&mut rng) {
            slot.die().await?;
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
    let seed = chosen_seed();

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
    let mut slots = Vec::new();
    for language in [language, Language::Rust] {
        slots.push(Arc::new(PeerSlot::start(language, &servers, SESSION, KILLS).await?));
    }
    for (number, slot) in (0..).zip(slots.iter().flat_map(|slot| [slot; THREADS])) {
        let (slot, witness) = (Arc::clone(slot), Arc::clone(&witness));
        let rng = StdRng::seed_from_u64(seed ^ number);
        tasks.spawn(contend(slot, witness, kind, format!("t{number}"), path.to_owned(), rng));
    }
    let mut visits = 0;
    while let Some(ended) = tasks.join_next().await {
        visits += ended??;
    }
    assert_eq!(visits, 2 * THREADS * VISITS);
    let killed: usize = slots.iter().map(|slot| KILLS - slot.kills_left()).sum();
    assert!(killed > 0, "no process was killed");
    // A session that was silent for the whole run may have ended.
    let mut oracle = ensemble.raw().await?;
    let written = String::from_utf8(oracle.data(&register).await?.0)?;
    assert_eq!(written, witness.writes.load(Ordering::SeqCst).to_string(), "a write was lost");
    let tokens = witness.tokens.lock().clone();
    assert!(tokens.is_sorted_by(|earlier, later| earlier < later), "a grant out of order");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mutex_has_one_holder_in_java_and_rust_while_both_are_killed() -> Outcome {
    with(Language::Java, Claim::Mutex, "/interop/kills/java-mutex").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_latch_has_one_leader_in_java_and_rust_while_both_are_killed() -> Outcome {
    with(Language::Java, Claim::Latch, "/interop/kills/java-latch").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_selector_has_one_leader_in_java_and_rust_while_both_are_killed() -> Outcome {
    with(Language::Java, Claim::Selector, "/interop/kills/java-selector").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_semaphore_mutex_has_one_holder_in_java_and_rust_while_both_are_killed() -> Outcome {
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
async fn a_mutex_has_one_holder_in_kazoo_and_rust_while_both_are_killed() -> Outcome {
    with(Language::Kazoo, Claim::Mutex, "/interop/kills/kazoo-mutex").await
}
