use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::listener::{accept, bind};
use super::running::Running;
use super::shared::Shared;
use super::{Builder, StartError};
use crate::fault::{ArmedFault, Fault, Transcript, When};
use crate::machine::{Isolation, Machine, Mode};

/// The number of tries to bind a port that another process uses, and the time between two.
const PORT_TRIES: usize = 1_000;
const PORT_PAUSE: Duration = Duration::from_millis(10);

/// A server on a loopback port, for tests and demos. Never for production data: it keeps everything in
/// memory.
///
/// It runs on a thread of its own, whatever runtime the test uses, and stops when it is dropped.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// use lockkeeper_testserver::TestServer;
///
/// let server = TestServer::start().await?;
/// println!("connect to {}", server.connect_string());
/// # Ok::<_, lockkeeper_testserver::StartError>(())
/// # })?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TestServer {
    running: Arc<Running>,
    index: usize,
    address: SocketAddr,
    listener: Mutex<Option<JoinHandle<()>>>,
}

impl TestServer {
    /// Starts a server on a free port with default options.
    ///
    /// # Errors
    ///
    /// As [`Builder::start`].
    pub async fn start() -> Result<Self, StartError> {
        Builder::new().start().await
    }

    /// Options for a server.
    pub fn builder() -> Builder {
        Builder::new()
    }

    pub(super) fn listen(running: Arc<Running>, index: usize, port: u16) -> Result<Self, StartError> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut server = Self { running, index, address, listener: Mutex::new(None) };
        server.address = server.open_port()?;
        Ok(server)
    }

    fn open_port(&self) -> Result<SocketAddr, StartError> {
        let refused = |source| StartError::Listen { port: self.address.port(), source };
        let _entered = self.running.runtime.enter();
        let listener = bind(self.address).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let listener = TcpListener::from_std(listener).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let accepting = accept(Arc::clone(&self.running.shared), self.index, listener);
        *self.listener.lock() = Some(self.running.runtime.spawn(accepting));
        Ok(address)
    }

    /// `127.0.0.1:port`, as clients take it.
    pub fn connect_string(&self) -> String {
        self.address.to_string()
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The authority that has signed the certificate of the server, in PEM form; `None` if connections are
    /// plain. With lockkeeper: `Tls::new().authority(pem)`.
    #[cfg(feature = "tls")]
    pub fn tls_authority(&self) -> Option<&str> {
        self.shared().identity.as_ref().map(super::tls::Identity::authority)
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    fn shared(&self) -> &Shared {
        &self.running.shared
    }

    /// Arms a fault. In an ensemble it counts for all servers unless [`When::server`] names one.
    pub fn fault(&self, when: When, fault: Fault) -> ArmedFault {
        self.shared().switchboard.arm(when, fault)
    }

    /// Writes down what passes from now on, of all servers of an ensemble.
    pub fn transcript(&self) -> Transcript {
        self.shared().switchboard.transcribe()
    }

    /// Closes all connections to this server. Sessions live on.
    pub fn drop_connections(&self) {
        self.shared().cut_connections(self.index);
    }

    /// From now on, connections that are dropped on order end with a reset, as those of a killed process do,
    /// and no longer with an orderly close; or the other way round. Clients distinguish the two. Default: an
    /// orderly close.
    pub fn reset_connections(&self, reset: bool) {
        self.front(|front| front.set_resetting(reset));
    }

    /// From now on closes every new connection as soon as it is made.
    pub fn refuse_connections(&self) {
        self.front(|front| front.set_refusing(true));
    }

    /// Takes new connections again.
    pub fn accept_connections(&self) {
        self.front(|front| front.set_refusing(false));
    }

    /// Stands still, as a paused process does: nothing is read, answered or expired, but connections stay and
    /// the kernel still takes new ones.
    pub fn freeze(&self) {
        self.front(|front| front.set_frozen(true));
    }

    /// Continues. Sessions whose timeout has passed meanwhile expire.
    pub fn thaw(&self) {
        self.front(|front| front.set_frozen(false));
    }

    fn front(&self, act: impl FnOnce(&super::front::Front)) {
        if let Some(front) = self.shared().fronts.get(self.index) {
            act(front);
        }
    }

    /// Whether it was not stopped.
    pub fn is_running(&self) -> bool {
        self.mode() != Mode::Stopped
    }

    /// Its mode in the ensemble: leader, follower, stopped, …
    pub fn mode(&self) -> Mode {
        self.inspect(|machine| machine.mode(self.index))
    }

    /// Stops as a killed process does: connections break and the port is closed. The tree and the sessions
    /// are kept for [`TestServer::restart`].
    ///
    /// If no other server serves then (with [`Builder::quorum`]: not enough of them), time stops for
    /// sessions, containers and nodes with a time to live until one is started again.
    pub async fn stop(&self) {
        let listening = self.close_port();
        if let Some(listening) = listening {
            // Aborted, so it ends with an error that says so; by then the port is closed.
            let _ = listening.await;
        }
        self.drop_connections();
        self.shared().command(|machine, now| machine.stop(self.index, now));
        self.shared().rearm.notify_one();
    }

    fn close_port(&self) -> Option<JoinHandle<()>> {
        let listening = self.listener.lock().take();
        if let Some(listening) = &listening {
            listening.abort();
        }
        listening
    }

    /// Listens again, on the same port, after [`TestServer::stop`]. If no server served meanwhile, every
    /// session gets its whole timeout anew, and the next search for containers is due after a whole interval.
    ///
    /// # Errors
    ///
    /// [`StartError::Listen`] when another process has bound the port meanwhile, and keeps it for longer than
    /// ten seconds.
    pub async fn restart(&self) -> Result<(), StartError> {
        self.stop().await;
        self.shared().command(|machine, now| machine.start(self.index, now));
        // While the port was closed, another server that asked for any port may have been given it.
        for _ in 0..PORT_TRIES {
            if self.open_port().is_ok() {
                return Ok(());
            }
            tokio::time::sleep(PORT_PAUSE).await;
        }
        let opened = self.open_port().map(drop);
        if opened.is_err() {
            self.shared().command(|machine, now| machine.stop(self.index, now));
        }
        opened
    }

    /// Ends a session now. Says whether it was open.
    pub fn expire(&self, session: i64) -> bool {
        let open = self.inspect(|machine| machine.sessions().contains(&session));
        self.shared().command(|machine, now| machine.expire(session, now));
        open
    }

    /// The open sessions, oldest first.
    pub fn sessions(&self) -> Vec<i64> {
        self.inspect(Machine::sessions)
    }

    /// Sets the number that the next sequential child of that node gets. Says whether the node exists.
    ///
    /// At `i32::MAX` the counter stops and the number repeats, unless [`TestServer::count_ahead`] makes it
    /// run on.
    pub fn set_sequence(&self, path: &str, next: i32) -> bool {
        let mut found = false;
        self.shared().command(|machine, _| {
            found = machine.set_sequence(path, next);
            Vec::new()
        });
        found
    }

    /// Sets the version of the data of that node. Says whether the node exists.
    pub fn set_version(&self, path: &str, version: i32) -> bool {
        let mut found = false;
        self.shared().command(|machine, _| {
            found = machine.set_version(path, version);
            Vec::new()
        });
        found
    }

    /// Makes sequence numbers run on past the end of their range (`2147483647`, then `-2147483648` and up),
    /// or stop there again. The real server does the first while creates are in flight and the second when
    /// none is. Default: they stop.
    pub fn count_ahead(&self, ahead: bool) {
        self.shared().command(|machine, _| {
            machine.count_ahead(ahead);
            Vec::new()
        });
    }

    /// Deletes a node as an administrator might: without a check of permission or version. Watchers get their
    /// events. Returns whether there was such a node without children.
    pub fn delete_node(&self, path: &str) -> bool {
        let mut deleted = false;
        self.shared().command(|machine, now| {
            let before = machine.zxid();
            let outputs = machine.delete_node(path, now);
            deleted = machine.zxid() > before;
            outputs
        });
        deleted
    }

    /// Moves the server's clock forward: sessions expire, containers are removed, as if that time had passed.
    pub fn advance_clock(&self, by: Duration) {
        self.shared().advance_clock(by);
    }

    /// Sets the server's clock back, as another leader with another clock does.
    pub fn set_clock_back(&self, by: Duration) {
        self.shared().set_clock_back(by);
    }

    /// Removes the containers and TTL nodes that are due, without waiting for the next search.
    pub fn reap(&self) {
        self.shared().command(Machine::reap);
    }

    /// Cuts this server off from the others. It keeps its clients and answers their pings and reads, from the
    /// past; their sessions are not kept alive.
    pub fn cut_off(&self, isolation: Isolation) {
        self.shared().command(|machine, _| {
            machine.cut_off(self.index, isolation);
            Vec::new()
        });
    }

    /// Ends [`TestServer::cut_off`]: the server catches up, sends the events it missed, and serves what
    /// waited.
    pub fn heal(&self) {
        self.shared().command(|machine, now| machine.heal(self.index, now));
    }

    /// Reads the state of the server. The server waits meanwhile, so `read` must not call it.
    pub fn inspect<T>(&self, read: impl FnOnce(&Machine) -> T) -> T {
        self.shared().inspect(read)
    }

    /// Waits until the state behind the server is so. It is asked again after every request and every change,
    /// and the server waits meanwhile, so `reached` must not call it.
    pub async fn wait_until(&self, reached: impl FnMut(&Machine) -> bool) {
        self.shared().wait_until(reached).await;
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.close_port();
        self.drop_connections();
        // Frozen connections wait for the thaw before they notice that they are closed.
        self.thaw();
    }
}
