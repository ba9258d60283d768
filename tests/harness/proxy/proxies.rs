//! The proxies of all servers, for one client.

use std::net::SocketAddr;
use std::sync::Arc;

use std::collections::BTreeMap;

use super::liar::{Liar, Lie};
use super::tap::Tap;
use super::{Arming, Direction, Log, Match, Proxy, RelayedSession};
use crate::ensemble::Ensemble;
use crate::error::HarnessError;
use crate::inspect;
use crate::wire::{self, OpCode};

/// One [`Proxy`] before each server; rules, log and sessions in common. Dropping it ends all connections
/// through it.
#[derive(Debug)]
pub struct Proxies {
    proxies: Vec<Proxy>,
    servers: Vec<SocketAddr>,
    tap: Arc<Tap>,
}

impl Proxies {
    /// Puts a proxy before each server of `ensemble`.
    ///
    /// # Errors
    ///
    /// [`HarnessError::Io`] if there is no free port.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub async fn start(ensemble: &Ensemble) -> Result<Self, HarnessError> {
        Self::before(ensemble.addresses()).await
    }

    /// Puts a proxy before each of `servers`, which may be any that speak ZooKeeper's protocol. Whether they
    /// are up does not matter.
    ///
    /// # Errors
    ///
    /// [`HarnessError::Io`] if there is no free port.
    #[expect(clippy::unused_async, reason = "it needs a runtime, which an async function makes plain")]
    pub async fn before(servers: Vec<SocketAddr>) -> Result<Self, HarnessError> {
        let tap = Arc::new(Tap::default());
        let start = |(index, &server)| Proxy::start(index, server, Arc::clone(&tap));
        let proxies = servers.iter().enumerate().map(start).collect::<Result<_, _>>()?;
        Ok(Self { proxies, servers, tap })
    }

    /// All proxies, as a client takes them: `127.0.0.1:p,127.0.0.1:q,…`.
    #[must_use]
    pub fn connect_string(&self) -> String {
        let addresses: Vec<String> = self.proxies.iter().map(|proxy| proxy.address().to_string()).collect();
        addresses.join(",")
    }

    /// The proxy of server `index`, from 0.
    ///
    /// # Panics
    ///
    /// If there is no such server.
    #[must_use]
    #[expect(clippy::indexing_slicing, reason = "a wrong index is a mistake in a test, which must fail")]
    pub fn proxy(&self, index: usize) -> &Proxy {
        &self.proxies[index]
    }

    /// How many connections are up.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.proxies.iter().map(Proxy::connections).sum()
    }

    /// [`Proxy::cut`] on all.
    ///
    /// # Errors
    ///
    /// As there.
    pub async fn cut(&self) -> Result<(), HarnessError> {
        futures::future::try_join_all(self.proxies.iter().map(Proxy::cut)).await.map(|_| ())
    }

    /// [`Proxy::refuse`] on all.
    ///
    /// # Errors
    ///
    /// As there.
    pub async fn refuse(&self) -> Result<(), HarnessError> {
        futures::future::try_join_all(self.proxies.iter().map(Proxy::refuse)).await.map(|_| ())
    }

    /// [`Proxy::accept`] on all.
    ///
    /// # Errors
    ///
    /// As there.
    pub async fn accept(&self) -> Result<(), HarnessError> {
        futures::future::try_join_all(self.proxies.iter().map(Proxy::accept)).await.map(|_| ())
    }

    /// [`Proxy::hold`] on all.
    pub fn hold(&self, direction: Direction) {
        self.proxies.iter().for_each(|proxy| proxy.hold(direction));
    }

    /// [`Proxy::release`] on all.
    pub fn release(&self, direction: Direction) {
        self.proxies.iter().for_each(|proxy| proxy.release(direction));
    }

    /// Chooses a message for a fault to strike once, whichever server receives it. What is armed first,
    /// strikes first.
    pub fn on(&self, matching: Match) -> Arming<'_> {
        Arming::new(&self.tap, matching)
    }

    /// Disarms every fault that waits for its message. One that waits for the reply to a message it has
    /// chosen will still strike.
    pub fn disarm_all(&self) {
        self.tap.disarm_all();
    }

    /// From now on one message in `one_in` from the servers is falsified, as `seed` decides.
    pub fn lie(&self, seed: u64, one_in: u32) {
        self.tap.lie(Some(Liar::new(seed, one_in)));
    }

    /// Forwards the servers' messages unchanged again. Returns the lies before.
    pub fn tell_the_truth(&self) -> Vec<Lie> {
        self.tap.lie(None)
    }

    /// All messages since the start or the last [`Proxies::clear_log`].
    #[must_use]
    pub fn log(&self) -> Log {
        self.tap.log()
    }

    /// Begins the log anew. Indices continue.
    pub fn clear_log(&self) {
        self.tap.clear_log();
    }

    /// How many requests of each kind each session made, by the log: [`Log::counts`].
    #[must_use]
    pub fn requests(&self) -> BTreeMap<(i64, OpCode), usize> {
        self.log().counts()
    }

    /// The sessions that the proxies have seen, the last attached last, without those that were closed or
    /// expired through these proxies.
    #[must_use]
    pub fn sessions(&self) -> Vec<RelayedSession> {
        self.tap.sessions()
    }

    /// Expires a session that the proxies have seen, and waits until the servers have forgotten it: see
    /// [`Ensemble::expire_session`].
    ///
    /// # Errors
    ///
    /// [`HarnessError::UnknownSession`] if it did not come by, [`HarnessError::Timeout`] if it lives on.
    pub async fn expire_session(&self, session: i64) -> Result<(), HarnessError> {
        let known = self.sessions().into_iter().find(|known| known.id == session);
        let known = known.ok_or(HarnessError::UnknownSession { session })?;
        wire::expire_session(&self.servers, session, &known.password).await?;
        self.tap.forget_session(session);
        Ok(())
    }

    /// Cuts the client off until its session has expired by itself, then lets it come back.
    ///
    /// # Errors
    ///
    /// [`HarnessError::Timeout`] if the session lives on.
    pub async fn sever_until_expired(&self, session: i64) -> Result<(), HarnessError> {
        self.refuse().await?;
        inspect::session_gone(&self.servers, session).await?;
        self.tap.forget_session(session);
        self.accept().await
    }
}
