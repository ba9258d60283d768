//! The links between the servers of an ensemble, for a test to cut.
//!
//! Each server is told addresses of ours for its peers, one for each pair and port, behind which its peers are. So a
//! partition needs no privileges.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::ports::Ports;
use crate::error::HarnessError;
use crate::timing::{Timing, within};

/// A server of an ensemble of three, by index.
type Index = usize;

const SERVERS: usize = 3;

/// `Learner.connectToLeader` tries five times, with as long a pause.
const TRIES: usize = 5;
const PAUSE: Duration = Duration::from_millis(100);

/// What the servers say to each other, under the test's control. Made before the [`Ensemble`](super::Ensemble) that
/// it is given to, by [`EnsembleBuilder::links`](super::EnsembleBuilder::links), and kept for as long.
#[derive(Clone, Debug)]
pub struct ServerLinks {
    ways: Arc<Vec<Way>>,
    _tasks: Arc<JoinSet<()>>,
}

/// From one server to a port of another.
#[derive(Clone, Debug)]
struct Way {
    from: Index,
    to: Index,
    port: Port,
    address: SocketAddr,
    /// Known when the servers' ports are.
    target: Arc<Mutex<Option<SocketAddr>>>,
    passage: watch::Sender<Passage>,
    /// How many connections pass something on.
    flowing: watch::Sender<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Port {
    Quorum,
    Election,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Passage {
    Open,
    /// Nothing passes, and nobody is told.
    Silent,
    /// Nothing passes. This server is not told; its peer is.
    Unheard(Index),
}

impl ServerLinks {
    /// Opens the ways among three servers that are yet to be started.
    ///
    /// # Errors
    ///
    /// [`HarnessError::Io`] if there are no free ports.
    pub async fn start() -> Result<Self, HarnessError> {
        let mut ways = Vec::new();
        let mut listeners = Vec::new();
        let pairs = (0..SERVERS).flat_map(|from| (0..SERVERS).map(move |to| (from, to)));
        for (from, to) in pairs.filter(|(from, to)| from != to) {
            for port in [Port::Quorum, Port::Election] {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
                let listener = listener.map_err(HarnessError::io("bind a link between servers"))?;
                let address = listener.local_addr().map_err(HarnessError::io("learn a link's port"))?;
                let (passage, flowing) = (watch::Sender::new(Passage::Open), watch::Sender::new(0));
                ways.push(Way { from, to, port, address, target: Arc::default(), passage, flowing });
                listeners.push(listener);
            }
        }
        let ways = Arc::new(ways);
        let mut tasks = JoinSet::new();
        for (way, listener) in ways.iter().zip(listeners) {
            // A server that was called by a lower one calls back, at the address it is told.
            let back = ways.iter().find(|back| {
                back.port == Port::Election
                    && way.port == Port::Election
                    && (back.from, back.to) == (way.to, way.from)
            });
            tasks.spawn(way.clone().serve(listener, back.map(|back| back.address)));
        }
        Ok(Self { ways, _tasks: Arc::new(tasks) })
    }

    /// From now on nothing passes between `server` and its peers, and no connection ends, as when a switch drops
    /// what it gets: each side takes the other for slow.
    ///
    /// # Errors
    ///
    /// [`HarnessError::Timeout`] if something still passes.
    pub async fn isolate(&self, server: usize) -> Result<(), HarnessError> {
        self.set(server, Passage::Silent).await
    }

    /// As [`isolate`](Self::isolate), but the peers of `server` are told: they see their connections end, and are
    /// refused. A leader goes on for its `syncLimit`, while its followers elect another one at once.
    ///
    /// # Errors
    ///
    /// As [`isolate`](Self::isolate).
    pub async fn depose(&self, server: usize) -> Result<(), HarnessError> {
        self.set(server, Passage::Unheard(server)).await
    }

    /// Opens all ways. What was connected before they were closed ends.
    pub fn heal(&self) {
        for way in self.ways.iter() {
            way.passage.send_replace(Passage::Open);
        }
    }

    async fn set(&self, server: Index, passage: Passage) -> Result<(), HarnessError> {
        let ways: Vec<&Way> = self.ways.iter().filter(|way| way.from == server || way.to == server).collect();
        for way in &ways {
            way.passage.send_replace(passage);
        }
        for way in ways {
            let mut flowing = way.flowing.subscribe();
            let still = flowing.wait_for(|flowing| *flowing == 0);
            within("nothing passes between the servers", Timing::signal(), still).await.map(|_| ())?;
        }
        Ok(())
    }

    /// Where the servers are.
    pub(super) fn lead_to(&self, ports: &Ports) {
        for way in self.ways.iter() {
            let target = match way.port {
                Port::Quorum => ports.quorum(way.to),
                Port::Election => ports.election(way.to),
            };
            *way.target.lock() = Some(target);
        }
    }

    /// How `from` reaches `to`: the addresses of its quorum and its election port.
    pub(super) fn addresses(&self, from: usize, to: usize) -> Option<(SocketAddr, SocketAddr)> {
        let of = |port| {
            let way = self.ways.iter().find(|way| (way.from, way.to, way.port) == (from, to, port));
            way.map(|way| way.address)
        };
        of(Port::Quorum).zip(of(Port::Election))
    }
}

impl Way {
    async fn serve(self, listener: TcpListener, back: Option<SocketAddr>) {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                Some(_) = connections.join_next() => {}
                accepted = listener.accept() => {
                    if let Ok((near, _)) = accepted {
                        connections.spawn(self.clone().relay(near, back));
                    }
                }
            }
        }
    }

    async fn relay(self, near: TcpStream, back: Option<SocketAddr>) {
        let mut passage = self.passage.subscribe();
        let Some(target) = *self.target.lock() else { return };
        let (mut near, mut far) = (Some(near), None);
        if *passage.borrow_and_update() == Passage::Open {
            let Some(connected) = self.connect(target).await else { return };
            let (near, far) = (near.as_mut(), far.insert(connected));
            if let Some(near) = near
                && !self.pass_on(near, far, back, &mut passage).await
            {
                return;
            }
        }
        // What is kept stays open and silent until the ways are opened again.
        loop {
            match *passage.borrow_and_update() {
                Passage::Open => return,
                Passage::Silent => {}
                Passage::Unheard(deaf) => drop(if self.from == deaf { far.take() } else { near.take() }),
            }
            if passage.changed().await.is_err() {
                return;
            }
        }
    }

    /// Reaches the server. A follower that is a moment earlier than its new leader asks again where it is refused; as
    /// it was accepted here, that is done for it.
    async fn connect(&self, target: SocketAddr) -> Option<TcpStream> {
        for _ in 0..TRIES {
            match TcpStream::connect(target).await {
                Ok(connected) => return Some(connected),
                Err(_) if self.port == Port::Quorum => tokio::time::sleep(PAUSE).await,
                Err(_) => break,
            }
        }
        None
    }

    /// Relays until a side ends, or until the way is closed, which is true.
    async fn pass_on(
        &self,
        near: &mut TcpStream,
        far: &mut TcpStream,
        back: Option<SocketAddr>,
        passage: &mut watch::Receiver<Passage>,
    ) -> bool {
        self.flowing.send_modify(|flowing| *flowing += 1);
        let is_closed = tokio::select! {
            biased;
            _ = passage.wait_for(|passage| *passage != Passage::Open) => true,
            _ = exchange(near, far, back) => false,
        };
        self.flowing.send_modify(|flowing| *flowing -= 1);
        is_closed
    }
}

async fn exchange(near: &mut TcpStream, far: &mut TcpStream, back: Option<SocketAddr>) -> io::Result<()> {
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    if let Some(back) = back {
        introduce(near, far, back).await?;
    }
    copy_bidirectional(near, far).await.map(|_| ())
}

/// The first message on an election port: who calls, and at which address it can be called back
/// (`QuorumCnxManager.InitialMessage`). That must be ours, too.
async fn introduce(near: &mut TcpStream, far: &mut TcpStream, back: SocketAddr) -> io::Result<()> {
    let (version, server) = (near.read_i64().await?, near.read_i64().await?);
    let length = usize::try_from(near.read_i32().await?).map_err(io::Error::other)?;
    near.read_exact(&mut vec![0; length.min(1024)]).await?;
    let back = back.to_string();
    let length = i32::try_from(back.len()).map_err(io::Error::other)?;
    let message =
        [&version.to_be_bytes()[..], &server.to_be_bytes(), &length.to_be_bytes(), back.as_bytes()].concat();
    far.write_all(&message).await
}
