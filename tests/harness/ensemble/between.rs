//! Relays between the servers of one ensemble, so that they can be cut off from each other.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

use super::ports::Ports;
use crate::error::HarnessError;

/// How long a connection is held for a server that does not listen yet. A leader opens its port a moment
/// after its followers look for it; without a relay they would try again, with one they would believe that it
/// hung up.
const PATIENCE: Duration = Duration::from_secs(1);
const RETRY: Duration = Duration::from_millis(20);

/// Relays before the ports at which the servers follow and elect each other, one for each pair and direction.
/// They have a thread of their own, so they outlive the runtime that asked for them.
///
/// [`Between::cut`] holds all messages from one server to another, as by a network that loses its packets:
/// connections stay open, and what was held arrives after [`Between::mend`].
#[derive(Debug)]
pub struct Between {
    broken: Arc<watch::Sender<Broken>>,
    /// The ports that a server uses for another one: following, electing.
    addresses: BTreeMap<(usize, usize), (u16, u16)>,
    tasks: Vec<AbortHandle>,
}

/// The directions that are held.
#[derive(Debug, Default)]
struct Broken {
    /// The directions that are cut: from a server, to a server.
    cuts: BTreeSet<(usize, usize)>,
    /// Servers whose peers close their connections without notice.
    deposed: BTreeSet<usize>,
}

impl Between {
    pub(crate) async fn start(servers: usize, ports: &Ports) -> Result<Self, HarnessError> {
        let mut between =
            Self { broken: Arc::default(), addresses: BTreeMap::new(), tasks: Vec::with_capacity(12) };
        for from in 0..servers {
            for to in (0..servers).filter(|to| *to != from) {
                let following = between.relay(from, to, ports.quorum(to), Greeting::Plain).await?;
                let electing = between.relay(from, to, ports.election(to), Greeting::Elector).await?;
                between.addresses.insert((from, to), (following, electing));
            }
        }
        Ok(between)
    }

    async fn relay(
        &mut self,
        from: usize,
        to: usize,
        target: SocketAddr,
        greeting: Greeting,
    ) -> Result<u16, HarnessError> {
        // Bound where the relay runs: a socket belongs to the runtime that made it.
        let listener = relays()?
            .spawn(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
            .await
            .unwrap_or_else(|error| Err(io::Error::other(error)))
            .map_err(HarnessError::io("listen between servers"))?;
        let port = listener.local_addr().map_err(HarnessError::io("learn a relay's port"))?.port();
        let relay = Relay { from, to, target, greeting, broken: Arc::clone(&self.broken) };
        self.tasks.push(relays()?.spawn(relay.run(listener)).abort_handle());
        Ok(port)
    }

    /// The ports at which server `from` connects to server `to`.
    pub(crate) fn ports(&self, from: usize, to: usize) -> Option<(u16, u16)> {
        self.addresses.get(&(from, to)).copied()
    }

    /// From now on nothing that server `from` says reaches server `to`. The other way stays as it is.
    pub fn cut(&self, from: usize, to: usize) {
        self.broken.send_modify(|broken| broken.cuts.extend([(from, to)]));
    }

    /// Cuts `server` off from all its peers, both ways: each side takes the other for slow.
    pub fn isolate(&self, server: usize) {
        let pairs = self.addresses.keys().filter(|(from, to)| *from == server || *to == server);
        self.broken.send_modify(|broken| broken.cuts.extend(pairs));
    }

    /// As [`isolate`](Self::isolate), but the peers of `server` notice: they see the end of their
    /// connections, and of new ones. A leader continues for its `syncLimit`, while its followers elect
    /// another one at once. Until [`mend_all`](Self::mend_all); what was connected before ends then for
    /// `server`, too.
    pub fn depose(&self, server: usize) {
        self.broken.send_modify(|broken| broken.deposed.extend([server]));
    }

    /// The messages from `from` reach `to` again, including the held ones.
    pub fn mend(&self, from: usize, to: usize) {
        self.broken.send_modify(|broken| broken.cuts.retain(|way| *way != (from, to)));
    }

    /// Mends everything.
    pub fn mend_all(&self) {
        self.broken.send_replace(Broken::default());
    }
}

impl Drop for Between {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

/// The runtime of all relays of this process.
fn relays() -> Result<&'static Runtime, HarnessError> {
    static RELAYS: LazyLock<io::Result<Runtime>> = LazyLock::new(|| {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("relays")
            .enable_all()
            .build()
    });
    RELAYS.as_ref().map_err(|error| HarnessError::io("start the relays")(error.kind().into()))
}

/// The first message of a connection.
#[derive(Clone, Copy, Debug)]
enum Greeting {
    Plain,
    /// An elector sends its address. A peer with the greater number closes the connection and connects to
    /// that address, past the relays; so the relay forwards the number alone, as electors did before 3.5, and
    /// the peer connects to its configured address.
    Elector,
}

/// The way from one server to a port of another.
#[derive(Clone, Debug)]
struct Relay {
    from: usize,
    to: usize,
    target: SocketAddr,
    greeting: Greeting,
    broken: Arc<watch::Sender<Broken>>,
}

impl Relay {
    async fn run(self, listener: TcpListener) {
        let mut links = JoinSet::new();
        loop {
            tokio::select! {
                Some(_) = links.join_next() => {}
                Ok((near, _)) = listener.accept() => {
                    links.spawn(self.clone().link(near));
                }
            }
        }
    }

    async fn link(self, near: TcpStream) {
        if let Some(deposed) = self.deposed() {
            return self.keep(near, self.from == deposed).await;
        }
        let Some(far) = self.dial().await else { return };
        // Votes are small, and wait for each other.
        let _ = (near.set_nodelay(true), far.set_nodelay(true));
        let (mut near, mut far) = (near.into_split(), far.into_split());
        let passing = async {
            tokio::join!(
                self.pump((self.from, self.to), &mut near.0, &mut far.1, self.greeting),
                self.pump((self.to, self.from), &mut far.0, &mut near.1, Greeting::Plain),
            )
        };
        let deposed = tokio::select! {
            _ = passing => return,
            deposed = self.becomes_deposed() => deposed,
        };
        tokio::join!(self.keep(near, self.from == deposed), self.keep(far, self.to == deposed));
    }

    /// The end of this way that is deposed.
    fn deposed(&self) -> Option<usize> {
        let broken = self.broken.borrow();
        [self.from, self.to].into_iter().find(|end| broken.deposed.contains(end))
    }

    async fn becomes_deposed(&self) -> usize {
        let mut broken = self.broken.subscribe();
        loop {
            if let Some(deposed) = self.deposed() {
                return deposed;
            }
            // Fails only without a sender, which is `self.broken`.
            let _ = broken.changed().await;
        }
    }

    /// Keeps a connection, in silence, for as long as its end is deposed; that of a peer ends at once.
    async fn keep(&self, connection: impl Send, is_deposed: bool) {
        if is_deposed {
            let mended =
                |broken: &Broken| ![self.from, self.to].iter().any(|end| broken.deposed.contains(end));
            let _ = self.broken.subscribe().wait_for(mended).await;
        }
        drop(connection);
    }

    async fn dial(&self) -> Option<TcpStream> {
        let dialling = async {
            loop {
                if let Ok(stream) = TcpStream::connect(self.target).await {
                    return stream;
                }
                tokio::time::sleep(RETRY).await;
            }
        };
        tokio::time::timeout(PATIENCE, dialling).await.ok()
    }

    /// Forwards all bytes, and the end of the connection, while the direction is open.
    async fn pump(
        &self,
        way: (usize, usize),
        source: &mut OwnedReadHalf,
        sink: &mut OwnedWriteHalf,
        greeting: Greeting,
    ) {
        let mut bytes = vec![0; 16 << 10];
        if let Greeting::Elector = greeting {
            let Ok(number) = elector(source).await else { return };
            self.open(way).await;
            if sink.write_all(&number.to_be_bytes()).await.is_err() {
                return;
            }
        }
        loop {
            let read = source.read(&mut bytes).await.unwrap_or(0);
            self.open(way).await;
            let Some(read @ [_, ..]) = bytes.get(..read) else { break };
            if sink.write_all(read).await.is_err() {
                break;
            }
        }
        let _ = sink.shutdown().await;
    }

    async fn open(&self, way: (usize, usize)) {
        // Fails only without a sender, which is `self.broken`.
        let _ = self.broken.subscribe().wait_for(|broken| !broken.cuts.contains(&way)).await;
    }
}

/// Reads the first message of an elector (`QuorumCnxManager.InitialMessage`): protocol version, number,
/// address.
async fn elector(source: &mut OwnedReadHalf) -> io::Result<i64> {
    let version = source.read_i64().await?;
    if version >= 0 {
        return Ok(version);
    }
    let number = source.read_i64().await?;
    let length = usize::try_from(source.read_i32().await?).map_err(io::Error::other)?;
    source.read_exact(&mut vec![0; length.min(4096)]).await?;
    Ok(number)
}
