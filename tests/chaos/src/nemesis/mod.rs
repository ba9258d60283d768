//! Whatever strikes servers and clients, and heals them.

mod clients;
mod fault;
mod foreign;
mod plan;
mod servers;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::join_all;
use lockkeeper_tests::{Direction, Ensemble};
use rustix::process::Signal;

pub(crate) use self::fault::{Fault, Role};
pub(crate) use self::plan::{Plan, Planned};
use crate::driver::Client;
use crate::history::{Incident, Lane};
use crate::{Failure, clock};

/// Executes a plan.
#[derive(Debug)]
pub(crate) struct Nemesis {
    ensemble: Arc<Ensemble>,
    clients: Arc<[Client]>,
}

impl Nemesis {
    pub(crate) fn new(ensemble: Arc<Ensemble>, clients: Arc<[Client]>) -> Self {
        Self { ensemble, clients }
    }

    /// Strikes in all lanes at once, for `length` and until each kind has struck; yields what was done, in
    /// the order of its beginning.
    pub(crate) async fn carry_out(&self, Plan(decks): Plan, length: Duration) -> Vec<Incident> {
        let end = clock::now() + u64::try_from(length.as_nanos()).unwrap_or(u64::MAX / 2);
        let undealt = AtomicUsize::new(decks.len());
        let undealt = &undealt;
        let lanes = decks.into_iter().map(|deck| async move {
            let (lane, kinds) = (deck.lane, deck.kinds.len());
            let mut incidents = Vec::new();
            for planned in deck {
                if incidents.len() == kinds {
                    undealt.fetch_sub(1, Ordering::Relaxed);
                }
                // As long as there is a lane that needs time, the others continue.
                if incidents.len() >= kinds && undealt.load(Ordering::Relaxed) == 0 && clock::now() >= end {
                    break;
                }
                // The plan says for how long nothing strikes.
                tokio::time::sleep(planned.peace).await;
                incidents.push(self.strike(lane, planned).await);
            }
            incidents
        });
        let mut incidents: Vec<Incident> = join_all(lanes).await.into_iter().flatten().collect();
        incidents.sort_by_key(|incident| incident.start);
        incidents
    }

    async fn strike(&self, lane: Lane, planned: Planned) -> Incident {
        let start = clock::now();
        let mut incident = Incident {
            kind: planned.fault.name().to_owned(),
            lane,
            target: String::new(),
            start,
            stop: start,
            voids: Vec::new(),
            failed: None,
        };
        let struck = match lane {
            Lane::Servers => self.strike_servers(planned, &mut incident).await,
            Lane::Clients => self.strike_client(planned, &mut incident).await,
            Lane::Foreign => self.interfere(planned, &mut incident).await,
        };
        incident.failed = struck.err().map(|failure| failure.to_string());
        incident.stop = clock::now();
        incident
    }

    /// Undoes whatever was done, and waits until the servers agree. Tells of servers that have ended by
    /// themselves.
    pub(crate) async fn heal(&self) -> Result<Vec<String>, Failure> {
        let mut ended = Vec::new();
        if let Some(between) = self.ensemble.between() {
            between.mend_all();
        }
        for server in self.ensemble.servers() {
            if server.pid().is_none() {
                server.start().await?;
            } else if !server.is_running() && server.resume().await.is_err() {
                ended.push(format!("server {} ended by itself", server.index()));
                server.kill().await?;
                server.start().await?;
            }
        }
        for client in self.clients.iter() {
            client.proxies.release(Direction::Both);
            client.proxies.accept().await?;
            client.signal(Signal::CONT).await?;
        }
        self.ensemble.settled().await?;
        Ok(ended)
    }
}

/// For how long a fault lasts.
async fn last(planned: Planned) {
    tokio::time::sleep(planned.lasting).await;
}

/// Bounds what may never be answered, as long as the faults last.
async fn bounded<T>(work: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(Duration::from_secs(2), work).await.ok()
}
