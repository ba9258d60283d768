//! The proxy of one server.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Shutdown, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use super::gate::{Direction, Gate};
use super::link::Link;
use super::tap::Tap;
use crate::error::HarnessError;
use crate::timing::{Timing, within};

/// Stands between clients and one server. Made by [`Proxies`](super::Proxies), and lives in the runtime that
/// made it.
#[derive(Debug)]
pub struct Proxy {
    index: usize,
    address: SocketAddr,
    gate: Arc<Gate>,
    links: Arc<Links>,
    /// Whether new connections are wanted, and whether the listener has followed.
    wanted: watch::Sender<bool>,
    listening: watch::Receiver<bool>,
    task: AbortHandle,
    /// Keeps the port while nothing listens on it.
    _reserved: TcpSocket,
}

/// The connections that are up, each with what ends it.
type Links = watch::Sender<BTreeMap<u64, CancellationToken>>;

impl Proxy {
    /// Listens on a free loopback port for clients of `target`.
    pub(crate) fn start(index: usize, target: SocketAddr, tap: Arc<Tap>) -> Result<Self, HarnessError> {
        let reserved = socket((Ipv4Addr::LOCALHOST, 0).into())?;
        let address = reserved.local_addr().map_err(HarnessError::io("learn a proxy's port"))?;
        let listener = listen(address)?;
        let (wanted, listening) = (watch::Sender::new(true), watch::Sender::new(true));
        let (gate, links) = (Arc::<Gate>::default(), Arc::<Links>::default());
        let port = Port {
            index,
            target,
            tap,
            gate: Arc::clone(&gate),
            links: Arc::clone(&links),
            tasks: JoinSet::new(),
        };
        let seen = listening.subscribe();
        let task = tokio::spawn(port.run(listener, address, wanted.subscribe(), listening)).abort_handle();
        Ok(Self { index, address, gate, links, wanted, listening: seen, task, _reserved: reserved })
    }

    /// Index of its server.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// The address for clients.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many connections are up.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.links.borrow().len()
    }

    /// Ends all present connections, and returns when both sides of each are closed. New ones are
    /// welcome.
    ///
    /// # Errors
    ///
    /// [`HarnessError::Timeout`] if a connection does not end.
    pub async fn cut(&self) -> Result<(), HarnessError> {
        let doomed = self.links.borrow().clone();
        doomed.values().for_each(CancellationToken::cancel);
        let mut links = self.links.subscribe();
        let gone = links.wait_for(|links| doomed.keys().all(|doomed| !links.contains_key(doomed)));
        within("the proxy's connections end", Timing::signal(), gone).await.map(|_| ())
    }

    /// Ends all present connections and refuses new ones, as a server that is down does.
    ///
    /// # Errors
    ///
    /// As [`Proxy::cut`].
    pub async fn refuse(&self) -> Result<(), HarnessError> {
        self.listen(false).await?;
        self.cut().await
    }

    /// Takes new connections again.
    ///
    /// # Errors
    ///
    /// [`HarnessError::Timeout`] if the port cannot be listened on.
    pub async fn accept(&self) -> Result<(), HarnessError> {
        self.listen(true).await
    }

    /// From now on nothing passes this way, the end of a connection included, while all connections stay
    /// open. New ones are taken and held alike.
    pub fn hold(&self, direction: Direction) {
        self.gate.set(direction, true);
    }

    /// Forwards the held and all further messages.
    pub fn release(&self, direction: Direction) {
        self.gate.set(direction, false);
    }

    async fn listen(&self, wanted: bool) -> Result<(), HarnessError> {
        self.wanted.send_replace(wanted);
        let mut listening = self.listening.clone();
        let follows = listening.wait_for(|listening| *listening == wanted);
        within("the proxy's listener follows", Timing::signal(), follows).await.map(|_| ())
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // Its connections are tasks of this task.
        self.task.abort();
    }
}

/// The task that takes connections.
#[derive(Debug)]
struct Port {
    index: usize,
    target: SocketAddr,
    tap: Arc<Tap>,
    gate: Arc<Gate>,
    links: Arc<Links>,
    tasks: JoinSet<()>,
}

impl Port {
    async fn run(
        mut self,
        mut listener: TcpListener,
        address: SocketAddr,
        mut wanted: watch::Receiver<bool>,
        listening: watch::Sender<bool>,
    ) {
        loop {
            self.serve(&listener, &mut wanted).await;
            // If it goes on listening, `refuse` waits in vain, and says so.
            if end(listener).is_err() {
                return;
            }
            // The accepted connections are in `links` by now, for `refuse` to cut.
            listening.send_replace(false);
            if wanted.wait_for(|wanted| *wanted).await.is_err() {
                return;
            }
            // `accept` will wait in vain, and say so.
            let Ok(again) = listen(address) else { return };
            listener = again;
            listening.send_replace(true);
        }
    }

    /// Takes connections until they are no longer wanted.
    async fn serve(&mut self, listener: &TcpListener, wanted: &mut watch::Receiver<bool>) {
        loop {
            tokio::select! {
                biased;
                _ = wanted.wait_for(|wanted| !wanted) => return,
                Some(_) = self.tasks.join_next() => {}
                accepted = listener.accept() => {
                    let Ok((client, _)) = accepted else { continue };
                    let connection = self.tap.opened(self.index);
                    let cut = CancellationToken::new();
                    self.links.send_modify(|links| drop(links.insert(connection, cut.clone())));
                    let (gate, tap) = (Arc::clone(&self.gate), Arc::clone(&self.tap));
                    let link = Link { connection, target: self.target, gate, tap, cut };
                    let links = Arc::clone(&self.links);
                    let ended = move || links.send_modify(|links| drop(links.remove(&connection)));
                    self.tasks.spawn(link.run(client, ended));
                }
            }
        }
    }
}

/// A bound socket. Two may share a port as long as one of them at most listens.
fn socket(address: SocketAddr) -> Result<TcpSocket, HarnessError> {
    let bind = || {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        Ok(socket)
    };
    bind().map_err(HarnessError::io("bind a proxy's port"))
}

/// Ends the listening itself: a process that is being started keeps a copy of the socket for a moment, and
/// the kernel goes on taking connections until the last copy is closed.
fn end(listener: TcpListener) -> std::io::Result<()> {
    let socket = OwnedFd::from(listener.into_std()?);
    std::net::TcpStream::from(socket).shutdown(Shutdown::Both)
}

fn listen(address: SocketAddr) -> Result<TcpListener, HarnessError> {
    socket(address)?.listen(1024).map_err(HarnessError::io("listen on a proxy's port"))
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use tokio::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn an_ended_listener_takes_no_connection_while_a_copy_of_its_socket_is_open() {
        let listener = listen((Ipv4Addr::LOCALHOST, 0).into()).unwrap().into_std().unwrap();
        let (copy, address) = (listener.try_clone().unwrap(), listener.local_addr().unwrap());
        end(TcpListener::from_std(listener).unwrap()).unwrap();
        let refused = TcpStream::connect(address).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        drop(copy);
    }
}
