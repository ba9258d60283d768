//! A server, and clients of it.

use std::future::Future;
use std::time::Duration;

use lockkeeper_redis::{ConnectionManager, ConnectionManagerBuilder, Error, Phase};
use lockkeeper_redis_tests::{Proxy, RedisServer};
use lockkeeper_tests::{Timing, eventually};
use redis::aio::MultiplexedConnection;

/// A lease that no test waits for.
pub(crate) const LONG: Duration = Duration::from_secs(120);

/// A lease that tests wait for. A holder on a busy machine may not run for a second.
pub(crate) fn short() -> Duration {
    Timing::scaled(Duration::from_secs(2))
}

pub(crate) async fn server() -> RedisServer {
    RedisServer::start(&[]).await.unwrap()
}

pub(crate) fn builder(url: &str, lease: Duration) -> ConnectionManagerBuilder {
    ConnectionManager::builder(url).lease(lease).operation_timeout(Timing::scaled(Duration::from_secs(20)))
}

pub(crate) async fn client(server: &RedisServer, lease: Duration) -> ConnectionManager {
    builder(&server.url(), lease).connect().await.unwrap()
}

pub(crate) async fn through(proxy: &Proxy, lease: Duration) -> ConnectionManager {
    builder(&proxy.url(), lease).connect().await.unwrap()
}

/// What an acquire was waiting for at its timeout. If no answer came within it, on a busy machine, once more
/// with a longer one, when it has left the queue.
pub(crate) async fn phase_of_timeout<T: std::fmt::Debug, F: Future<Output = Result<T, Error>>>(
    server: &RedisServer,
    name: &str,
    mut timeout: Duration,
    acquire: impl Fn(Duration) -> F,
) -> Phase {
    loop {
        wait_for_queue(server, name, 0).await;
        match acquire(timeout).await.unwrap_err() {
            Error::Timeout { phase: Phase::Answer | Phase::Connecting, .. } => timeout *= 3,
            Error::Timeout { phase, .. } => return phase,
            error => panic!("{error}"),
        }
    }
}

/// The number of waiters in the queue of a lock.
pub(crate) async fn queued(raw: &mut MultiplexedConnection, name: &str) -> usize {
    let key = format!("{{{name}}}:lockkeeper:queue");
    redis::cmd("ZCARD").arg(key).query_async(raw).await.unwrap()
}

pub(crate) async fn wait_for_queue(server: &RedisServer, name: &str, count: usize) {
    let raw = server.raw().await.unwrap();
    let look = || {
        let (mut raw, name) = (raw.clone(), name.to_owned());
        async move { (queued(&mut raw, &name).await == count).then_some(()) }
    };
    eventually(format!("{count} waiters of {name}"), Timing::event(), look).await.unwrap();
}

/// Waits until the key of a lock is gone.
pub(crate) async fn wait_until_free(server: &RedisServer, name: &str) {
    let raw = server.raw().await.unwrap();
    let look = || {
        let (mut raw, name) = (raw.clone(), name.to_owned());
        async move {
            let exists: bool = redis::cmd("EXISTS").arg(name).query_async(&mut raw).await.unwrap();
            (!exists).then_some(())
        }
    };
    eventually(format!("{name} to be free"), Timing::event(), look).await.unwrap();
}
