//! The fixture of the tests with Java.

use std::env;
use std::error::Error as StdError;
use std::time::Duration;

use lockkeeper::{ConnectionManager, Mutex, MutexGuard};
use lockkeeper_tests::{
    CuratorGrant, CuratorPeer, CuratorThread, Ensemble, HarnessError, RawClient, Timing, eventually, left_out,
};
use tokio::sync::Mutex as AsyncMutex;

use crate::support::connect;

pub(super) type Failure = Box<dyn StdError + Send + Sync>;
pub(super) type Outcome = Result<(), Failure>;

/// Long enough for a Java process on a busy machine, short enough to wait for its end.
pub(super) const SESSION: Duration = Duration::from_secs(4);

/// Long enough for many answers of a server; no wait of this time for a held lock is granted.
pub(super) const SHORTLY: Duration = Duration::from_millis(300);

/// The seed of a test's choices: that of the environment, or one at random. It is printed, so that the
/// choices can be replayed.
pub(super) fn chosen_seed() -> u64 {
    let seed = env::var("LOCKKEEPER_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(rand::random);
    println!("to replay the choices: LOCKKEEPER_TEST_SEED={seed}");
    seed
}

/// A server, a Java process and our manager, a path for both, and a raw client.
pub(super) struct InteropFixture {
    pub(super) ensemble: &'static Ensemble,
    pub(super) java: CuratorPeer,
    pub(super) manager: ConnectionManager,
    pub(super) path: String,
    pub(super) oracle: AsyncMutex<RawClient>,
}

impl InteropFixture {
    /// Uses the server that all these tests share, and a path of the test's own. `None` where such tests are
    /// left out.
    pub(super) async fn at(path: &str) -> Result<Option<Self>, Failure> {
        if left_out() {
            return Ok(None);
        }
        let ensemble = Ensemble::shared().await?;
        let java = CuratorPeer::start(&ensemble.connect_string(), SESSION).await?;
        let manager = connect(&ensemble.connect_string()).await;
        let oracle = AsyncMutex::new(ensemble.raw().await?);
        Ok(Some(Self { ensemble, java, manager, path: path.to_owned(), oracle }))
    }

    pub(super) fn mutex(&self) -> Mutex {
        Mutex::new(&self.manager, &self.path).unwrap()
    }

    pub(super) fn rust(&self) -> Contender {
        Contender::Rust(self.mutex())
    }

    pub(super) fn java(&self, thread: &str) -> Contender {
        Contender::Java(self.java.thread(thread), self.path.clone())
    }

    /// Waits until the queue has `contenders` contenders. Returns the paths of their nodes in the order of
    /// the queue.
    pub(super) async fn queue_of(&self, contenders: usize) -> Result<Vec<String>, HarnessError> {
        queue_of(self.ensemble, &self.path, contenders).await
    }
}

/// Reads the server directly, without a client under test.
pub(super) async fn queue_of(
    ensemble: &Ensemble,
    path: &str,
    contenders: usize,
) -> Result<Vec<String>, HarnessError> {
    let below = format!("{path}/");
    eventually(format!("{contenders} contenders at {path}"), Timing::event(), async || {
        let dump = ensemble.server(0).dump().await.ok()?;
        let mut queue: Vec<String> =
            dump.ephemerals.into_values().flatten().filter(|node| node.starts_with(&below)).collect();
        queue.sort_by_key(|node| node[node.len() - 10..].to_owned());
        (queue.len() == contenders).then_some(queue)
    })
    .await
}

/// A contender in either language.
#[derive(Clone)]
pub(super) enum Contender {
    Java(CuratorThread, String),
    Rust(Mutex),
}

/// A hold in either language.
pub(super) enum Hold {
    Java(CuratorThread, String, CuratorGrant),
    Rust(MutexGuard),
}

impl Contender {
    pub(super) async fn acquire(&self) -> Result<Hold, Failure> {
        Ok(match self {
            Self::Java(thread, path) => Hold::of_java(thread, path, thread.acquire(path).await?),
            Self::Rust(mutex) => Hold::Rust(mutex.acquire().await?),
        })
    }

    pub(super) async fn acquire_timeout(&self, timeout: Duration) -> Result<Option<Hold>, Failure> {
        match self {
            Self::Java(thread, path) => {
                let grant = thread.acquire_timeout(path, timeout).await?;
                Ok(grant.map(|grant| Hold::of_java(thread, path, grant)))
            }
            Self::Rust(mutex) => match mutex.acquire_timeout(timeout).await {
                Ok(guard) => Ok(Some(Hold::Rust(guard))),
                Err(error) if error.is_timeout() => Ok(None),
                Err(error) => Err(error.into()),
            },
        }
    }
}

impl Hold {
    pub(super) fn of_java(thread: &CuratorThread, path: &str, grant: CuratorGrant) -> Self {
        Self::Java(thread.clone(), path.to_owned(), grant)
    }

    pub(super) fn token(&self) -> u64 {
        match self {
            Self::Java(.., grant) => grant.czxid,
            Self::Rust(guard) => guard.fencing_token().as_u64(),
        }
    }

    pub(super) async fn release(self) -> Outcome {
        match self {
            Self::Java(thread, path, _) => thread.release(&path).await?,
            Self::Rust(guard) => guard.release().await?,
        }
        Ok(())
    }
}
