//! Several sessions for one process, distributed by path.

use std::fmt::{self, Debug, Formatter};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;

use super::builder::ConnectionManagerBuilder;
use super::connection_manager::ConnectionManager;
use super::health::Health;
use super::shutdown::CLOSING;
use crate::error::{ConfigError, ConnectError, Error};
use crate::time::deadline::Deadline;

/// The largest useful number of sessions of one process. Beyond it, use another process.
const SESSIONS_MAX: u32 = 64;

/// Several connection managers with the same settings. A path always has the same manager.
///
/// A session has one TCP connection, and its requests are processed one after the other. Several sessions
/// increase the throughput of a process that uses very many locks at the same time. Any other process gains
/// nothing: begin with a single [`ConnectionManager`].
///
/// [`for_path`](Self::for_path) gives all contenders of a path in this process the same session. This is
/// necessary for the hand-off in memory, for an
/// [owner](https://docs.rs/lockkeeper/latest/lockkeeper/struct.Owner.html) to find its holds again, and for
/// the detection of circular waits. Processes need not agree: pools of other sizes, and single managers,
/// contend for the same locks.
///
/// # Several paths together
///
/// A transaction, and all members of a `MultiLock`, need **one** manager; its `build()` refuses a mix. Locks
/// that are ever taken together, or nested by one owner, should always use one manager: call `for_path` with
/// a text that they share, such as their parent path. If they share none, create the members with the manager
/// of the first path. Other contenders are still excluded, but hand-off in memory and the holds of an owner
/// do not work across managers.
///
/// # Cost
///
/// Each session costs pings and confirmations on the servers, and one connection of `maxClientCnxns` (by
/// default 60 for each client address).
///
/// # Session loss
///
/// Each manager has its own session and lease. One session may be lost, with all its holds, while the others
/// continue. Epochs count separately.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let servers = server.connect_string();
/// use lockkeeper_core::{ConnectionManager, Health};
///
/// let pool = ConnectionManager::builder(&servers).connect_pool(4).await?;
///
/// // In a program: Mutex::new(pool.for_path("/trains/7"), "/trains/7")
/// let manager = pool.for_path("/trains/7");
/// assert!(manager.is_same_as(pool.for_path("/trains/7")));
///
/// assert!(pool.health().iter().all(Health::is_ready));
/// pool.shutdown().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ConnectionPool(Arc<PoolMembers>);

struct PoolMembers {
    first: ConnectionManager,
    others: Vec<ConnectionManager>,
}

impl ConnectionManagerBuilder {
    /// Opens a pool of 1 to 64 sessions, each with these settings.
    ///
    /// # Errors
    ///
    /// [`ConnectError::Config`] for another number of sessions, before anything is sent; otherwise as
    /// [`connect`](Self::connect). If one session cannot be opened, all are closed again: this takes a second
    /// at most after the connect deadline.
    ///
    /// # Cancel safety
    ///
    /// As [`connect`](Self::connect). Sessions that are already open are closed.
    pub async fn connect_pool(self, sessions: u32) -> Result<ConnectionPool, ConnectError> {
        self.pool_of(sessions, Self::connect).await
    }

    /// As [`connect_pool`](Self::connect_pool), over a simulated ensemble and machine.
    ///
    /// # Errors
    ///
    /// As [`connect_pool`](Self::connect_pool).
    #[cfg(feature = "__simulation")]
    #[doc(hidden)]
    pub async fn connect_pool_over(
        self,
        sessions: u32,
        backend: Arc<dyn crate::wire::Backend>,
        environment: Arc<dyn crate::environment::Environment>,
    ) -> Result<ConnectionPool, ConnectError> {
        self.pool_of(sessions, |builder| builder.connect_over(Arc::clone(&backend), Arc::clone(&environment)))
            .await
    }

    async fn pool_of<F>(
        self,
        sessions: u32,
        connect: impl Fn(Self) -> F,
    ) -> Result<ConnectionPool, ConnectError>
    where
        F: Future<Output = Result<ConnectionManager, ConnectError>>,
    {
        if !(1..=SESSIONS_MAX).contains(&sessions) {
            return Err(ConnectError::Config(ConfigError::Setting {
                name: "sessions",
                value: sessions.to_string(),
                advice: "take 1 to 64 for a pool",
            }));
        }
        let others = join_all((1..sessions).map(|_| connect(self.clone())));
        let (first, others) = tokio::join!(connect(self), others);
        let mut opened = Vec::new();
        let mut failed = None;
        for connected in others {
            match connected {
                Ok(manager) => opened.push(manager),
                Err(error) => failed = Some(error),
            }
        }
        let error = match (first, failed) {
            (Ok(first), None) => return Ok(ConnectionPool(Arc::new(PoolMembers { first, others: opened }))),
            (Ok(first), Some(error)) => {
                opened.push(first);
                error
            }
            (Err(error), _) => error,
        };
        let limit = Deadline::after(CLOSING);
        join_all(opened.iter().map(|manager| manager.close(limit))).await;
        Err(error)
    }
}

impl ConnectionPool {
    /// The manager for all contenders of `path`. It is the same one for the same path, in every pool of this
    /// size and in every process.
    ///
    /// The path is not parsed. Contenders that must share a session can use any common text.
    #[must_use]
    pub fn for_path(&self, path: impl AsRef<str>) -> &ConnectionManager {
        let number = number_of(path.as_ref(), self.0.sessions());
        let other = number.checked_sub(1).and_then(|number| self.0.others.get(number));
        other.unwrap_or(&self.0.first)
    }

    /// All managers, in the order of [`health`](Self::health).
    pub fn managers(&self) -> impl Iterator<Item = &ConnectionManager> {
        std::iter::once(&self.0.first).chain(&self.0.others)
    }

    /// The present health of each manager. Costs no request.
    #[must_use]
    pub fn health(&self) -> Vec<Health> {
        self.managers().map(ConnectionManager::health).collect()
    }

    /// Closes all sessions at the same time and waits for the server's confirmations, as
    /// [`ConnectionManager::shutdown`].
    ///
    /// # Errors
    ///
    /// The first error, after all shutdowns have ended.
    ///
    /// # Cancel safety
    ///
    /// The shutdown continues when this future is dropped.
    pub async fn shutdown(&self) -> Result<(), Error> {
        join_all(self.managers().map(ConnectionManager::shutdown)).await.into_iter().collect()
    }

    /// Shuts all managers down at the same time within `limit`, as [`ConnectionManager::shutdown_within`].
    /// Each session is closed once nothing is held on *it*.
    ///
    /// Returns the total number of holds that were cut off.
    ///
    /// # Errors
    ///
    /// The first error, after all shutdowns have ended.
    ///
    /// # Cancel safety
    ///
    /// As [`ConnectionManager::shutdown_within`].
    pub async fn shutdown_within(&self, limit: Duration) -> Result<u32, Error> {
        let cut_off = join_all(self.managers().map(|manager| manager.shutdown_within(limit))).await;
        cut_off.into_iter().try_fold(0, |sum: u32, of| Ok(sum.saturating_add(of?)))
    }
}

impl Debug for ConnectionPool {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.managers()).finish()
    }
}

impl PoolMembers {
    fn sessions(&self) -> NonZeroU64 {
        NonZeroU64::MIN.saturating_add(self.others.len() as u64)
    }
}

/// The number of the session of a path.
///
/// FNV-1a, and the finish of SplitMix64, because FNV-1a alone gives similar paths similar low bits. The hash
/// of the standard library may change in its next version.
fn number_of(path: &str, sessions: NonZeroU64) -> usize {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in path.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    // Below 64.
    usize::try_from((hash ^ (hash >> 31)) % sessions).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    const PATHS: u64 = 10_000;

    fn spread(sessions: u64, path: impl Fn(u64) -> String) -> Vec<u64> {
        let sessions = NonZeroU64::new(sessions).unwrap();
        let mut counts = vec![0; usize::try_from(sessions.get()).unwrap()];
        for number in 0..PATHS {
            counts[number_of(&path(number), sessions)] += 1;
        }
        counts
    }

    #[test]
    fn paths_are_spread_evenly_however_alike_they_are() {
        let kinds: [fn(u64) -> String; 4] = [
            |number| format!("/locks/{number}"),
            |number| format!("/shop/order-{number:010}/lock"),
            |number| format!("/locks/{:x}", number * 8),
            |number| format!("/{}/{}", number % 100, number / 100),
        ];
        for sessions in [2, 3, 8, 10, 64] {
            for path in kinds {
                let (counts, even) = (spread(sessions, path), PATHS / sessions);
                // By chance the counts of 64 sessions are within some 30 % of even.
                let is_even = counts.iter().all(|count| count.abs_diff(even) * 2 < even);
                assert!(is_even, "{}: {counts:?}", path(1));
            }
        }
    }

    #[test]
    fn a_path_has_the_same_number_for_ever() {
        let numbers =
            |path| [1, 2, 8, 64].map(|sessions| number_of(path, NonZeroU64::new(sessions).unwrap()));
        assert_eq!(numbers(""), [0, 1, 3, 27]);
        assert_eq!(numbers("/locks/train-7"), [0, 1, 5, 5]);
        assert_eq!(numbers("/läden/1"), [0, 1, 7, 31]);
    }

    #[test]
    fn an_invalid_size_is_refused_before_anything_is_sent() {
        for size in [0, 65, u32::MAX] {
            let connect = ConnectionManager::builder("localhost:1").connect_pool(size);
            // Without a runtime nothing could be sent.
            let error = connect.now_or_never().unwrap().unwrap_err();
            assert!(matches!(error, ConnectError::Config(ConfigError::Setting { name: "sessions", .. })));
        }
    }
}
