//! The libraries that are measured, by one interface.

use std::str::FromStr;
use std::time::Duration;

use lockkeeper_redis::{ConnectionManager, Mutex, MutexGuard};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Script};
use uuid::Uuid;

use crate::load::{Failure, KEY, LEASE, Peer};

/// The keys of the scripts.
const KEYS: [&str; 4] = [
    KEY,
    "{lockkeeper-redis-bench}:lockkeeper:fence",
    "{lockkeeper-redis-bench}:lockkeeper:queue",
    "{lockkeeper-redis-bench}:lockkeeper:waiters",
];
const ACQUIRE: &str = concat!(
    include_str!("../../redis/src/script/queue.lua"),
    "\n",
    include_str!("../../redis/src/script/mutex.lua"),
    "\n",
    include_str!("../../redis/src/script/acquire.lua"),
);
const RELEASE: &str = concat!(
    include_str!("../../redis/src/script/queue.lua"),
    "\n",
    include_str!("../../redis/src/script/mutex.lua"),
    "\n",
    include_str!("../../redis/src/script/release.lua"),
);
/// The pause of the polling loop, as redis-py has it.
const POLL: Duration = Duration::from_millis(100);

/// The time for an answer: that of the client crate, half a second, ends a load on a machine that pauses.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// A connection of the bare client crate.
pub(crate) async fn connected(url: &str) -> Result<MultiplexedConnection, Failure> {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(ANSWER_MAX))
        .set_response_timeout(Some(ANSWER_MAX));
    Ok(redis::Client::open(url)?.get_multiplexed_async_connection_with_config(&config).await?)
}

/// Which library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeerKind {
    /// This project's.
    Lockkeeper,
    /// The bare commands, without a wait, a token or a queue: what no lock can beat.
    Floor,
    /// The scripts of this project's mutex without its client, and without a wait.
    Scripts,
    /// `SET NX PX`, tried again after a pause.
    Loop,
}

impl FromStr for PeerKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "lockkeeper" => Self::Lockkeeper,
            "floor" => Self::Floor,
            "scripts" => Self::Scripts,
            "loop" => Self::Loop,
            _ => return Err(format!("{text} is no peer: use lockkeeper, floor, scripts or loop")),
        })
    }
}

/// A connection by one library.
pub(crate) enum Client {
    Lockkeeper(Mutex),
    Bare { connection: MultiplexedConnection, unlock: Script, waits: bool },
    Scripts { connection: MultiplexedConnection, acquire: Script, release: Script },
}

/// A held lock.
pub(crate) enum Held {
    Lockkeeper(Box<MutexGuard>),
    Bare(String),
}

impl Peer for Client {
    type Kind = PeerKind;
    type Held = Held;

    fn kind(name: &str) -> Result<PeerKind, Failure> {
        Ok(name.parse()?)
    }

    async fn connect(url: &str, kind: PeerKind) -> Result<Self, Failure> {
        Ok(match kind {
            PeerKind::Lockkeeper => {
                let manager = ConnectionManager::builder(url).lease(LEASE).connect().await?;
                Self::Lockkeeper(Mutex::new(&manager, KEY)?)
            }
            PeerKind::Scripts => Self::Scripts {
                connection: connected(url).await?,
                acquire: Script::new(ACQUIRE),
                release: Script::new(RELEASE),
            },
            PeerKind::Floor | PeerKind::Loop => Self::Bare {
                connection: connected(url).await?,
                unlock: Script::new(
                    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) \
                     end return 0",
                ),
                waits: kind == PeerKind::Loop,
            },
        })
    }

    async fn acquire(&self) -> Result<Held, Failure> {
        match self {
            Self::Lockkeeper(mutex) => Ok(Held::Lockkeeper(Box::new(mutex.acquire().await?))),
            Self::Scripts { connection, acquire, .. } => {
                let (mut connection, id) = (connection.clone(), Uuid::new_v4().simple().to_string());
                let mut invocation = acquire.key(&KEYS[..]);
                invocation.arg(&id).arg(LEASE.as_millis().to_string()).arg("try").arg("");
                let answer: Vec<i64> = invocation.invoke_async(&mut connection).await?;
                match answer.first() {
                    Some(1) => Ok(Held::Bare(id)),
                    _ => Err("the scripts have no wait: use them uncontended".into()),
                }
            }
            Self::Bare { connection, waits, .. } => {
                let (mut connection, id) = (connection.clone(), Uuid::new_v4().simple().to_string());
                loop {
                    let mut set = redis::cmd("SET");
                    set.arg(KEY).arg(&id).arg("NX").arg("PX").arg(LEASE.as_millis().to_string());
                    if set.query_async::<Option<String>>(&mut connection).await?.is_some() {
                        return Ok(Held::Bare(id));
                    }
                    if !waits {
                        return Err("the floor has no wait: use it uncontended".into());
                    }
                    tokio::time::sleep(POLL).await;
                }
            }
        }
    }

    async fn release(&self, held: Held) -> Result<(), Failure> {
        match (self, held) {
            (Self::Lockkeeper(_), Held::Lockkeeper(guard)) => Ok((*guard).release().await?),
            (Self::Scripts { connection, release, .. }, Held::Bare(id)) => {
                let released: i64 =
                    release.key(&KEYS[..]).arg(id).invoke_async(&mut connection.clone()).await?;
                if released == 1 { Ok(()) } else { Err("the lock was not ours".into()) }
            }
            (Self::Bare { connection, unlock, .. }, Held::Bare(id)) => {
                let mut connection = connection.clone();
                let released: i64 = unlock.key(KEY).arg(id).invoke_async(&mut connection).await?;
                if released == 1 { Ok(()) } else { Err("the lock was not ours".into()) }
            }
            _ => Err("a lock of another library".into()),
        }
    }
}
