//! What stands between the servers of one ensemble, so that they can be cut off from each other.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

use super::ports::Ports;
use crate::error::HarnessError;

/// How long a connection is held for a server that does not listen yet. A leader opens its port a moment after its
/// followers look for it; without a relay they would try again, with one they would believe that it hung up.
const PATIENCE: Duration = Duration::from_secs(1);
const RETRY: Duration = Duration::from_millis(20);

/// Relays before the ports at which the servers follow and elect each other, one for each pair and direction. Lives in
/// the runtime that made it.
///
/// Whatever one server tells another is held by [`Between::cut`], as by a network that loses its packets: connections
/// stay open, and what was held arrives after [`Between::mend`].
#[derive(Debug)]
pub struct Between {
    cuts: Arc<Cuts>,
    /// What a server takes for another's ports: following, electing.
    addresses: BTreeMap<(usize, usize), (u16, u16)>,
    tasks: Vec<AbortHandle>,
}

/// The directions that are cut: from a server, to a server.
type Cuts = watch::Sender<BTreeSet<(usize, usize)>>;

impl Between {
    pub(crate) async fn start(servers: usize, ports: &Ports) -> Result<Self, HarnessError> {
        let mut between =
            Self { cuts: Arc::default(), addresses: BTreeMap::new(), tasks: Vec::with_capacity(12) };
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
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .map_err(HarnessError::io("listen between servers"))?;
        let port = listener.local_addr().map_err(HarnessError::io("learn a relay's port"))?.port();
        let relay = Relay { from, to, target, greeting, cuts: Arc::clone(&self.cuts) };
        self.tasks.push(tokio::spawn(relay.run(listener)).abort_handle());
        Ok(port)
    }

    /// The ports at which server `from` is to look for server `to`.
    pub(crate) fn ports(&self, from: usize, to: usize) -> Option<(u16, u16)> {
        self.addresses.get(&(from, to)).copied()
    }

    /// From now on nothing that server `from` says reaches server `to`. The other way stays as it is.
    pub fn cut(&self, from: usize, to: usize) {
        self.cuts.send_modify(|cuts| cuts.extend([(from, to)]));
    }

    /// Cuts `server` off from all its peers, both ways.
    pub fn isolate(&self, server: usize) {
        let pairs = self.addresses.keys().filter(|(from, to)| *from == server || *to == server);
        self.cuts.send_modify(|cuts| cuts.extend(pairs));
    }

    /// What `from` says reaches `to` again, and so does what was held.
    pub fn mend(&self, from: usize, to: usize) {
        self.cuts.send_modify(|cuts| cuts.retain(|way| *way != (from, to)));
    }

    /// Mends everything.
    pub fn mend_all(&self) {
        self.cuts.send_modify(BTreeSet::clear);
    }
}

impl Drop for Between {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

/// What a connection begins with.
#[derive(Clone, Copy, Debug)]
enum Greeting {
    Plain,
    /// An elector says where it listens. A peer with the greater number hangs up and dials that address, past the
    /// relays; so what it is told is the number alone, as electors did before 3.5, and it dials what it is configured
    /// with.
    Elector,
}

/// The way from one server to a port of another.
#[derive(Clone, Debug)]
struct Relay {
    from: usize,
    to: usize,
    target: SocketAddr,
    greeting: Greeting,
    cuts: Arc<Cuts>,
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
        let Some(far) = self.dial().await else { return };
        // Votes are small, and wait for each other.
        let _ = (near.set_nodelay(true), far.set_nodelay(true));
        let (near_source, near_sink) = near.into_split();
        let (far_source, far_sink) = far.into_split();
        tokio::join!(
            self.pump((self.from, self.to), near_source, far_sink, self.greeting),
            self.pump((self.to, self.from), far_source, near_sink, Greeting::Plain),
        );
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

    /// Passes on what comes, its end included, while the way is open.
    async fn pump(
        &self,
        way: (usize, usize),
        mut source: OwnedReadHalf,
        mut sink: OwnedWriteHalf,
        greeting: Greeting,
    ) {
        let mut bytes = vec![0; 16 << 10];
        if let Greeting::Elector = greeting {
            let Ok(number) = elector(&mut source).await else { return };
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
        // Fails only without a sender, which is `self.cuts`.
        let _ = self.cuts.subscribe().wait_for(|cuts| !cuts.contains(&way)).await;
    }
}

/// Reads the first message of an elector (`QuorumCnxManager.InitialMessage`): protocol version, number, address.
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
