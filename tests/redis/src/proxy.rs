use std::sync::atomic::{AtomicBool, AtomicU16, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::Failure;

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The connection breaks before the server receives it.
    LoseRequest,
    /// The server processes it, and the connection breaks before the reply.
    LoseReply,
}

/// A link to a server that breaks on order. It knows a request by the command that it contains.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    state: Arc<State>,
    accepting: JoinHandle<()>,
}

#[derive(Debug)]
struct State {
    server: AtomicU16,
    /// The fault, and how many requests pass before it.
    armed: Mutex<Option<(Fault, usize)>>,
    /// The requests that passed with a script.
    requests: AtomicUsize,
    struck: watch::Sender<usize>,
    /// The number of cuts; each connection ends at the next one.
    cuts: watch::Sender<usize>,
    refuses: AtomicBool,
    held: watch::Sender<bool>,
}

impl Proxy {
    /// A link to the server at this port.
    ///
    /// # Errors
    ///
    /// There is no free port.
    pub async fn start(server: u16) -> Result<Self, Failure> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let state = Arc::new(State {
            server: AtomicU16::new(server),
            armed: Mutex::default(),
            requests: AtomicUsize::new(0),
            struck: watch::Sender::new(0),
            cuts: watch::Sender::new(0),
            refuses: AtomicBool::new(false),
            held: watch::Sender::new(false),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&state)));
        Ok(Self { port, state, accepting })
    }

    /// The URL of this side of the link.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// The port of this side of the link.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// From now on, new connections lead to the server at this port. Those that exist stay.
    pub fn point_to(&self, server: u16) {
        self.state.server.store(server, Ordering::SeqCst);
    }

    /// Strikes the script after the next `passing` scripts.
    pub fn arm(&self, fault: Fault, passing: usize) {
        *self.state.armed.lock().unwrap_or_else(PoisonError::into_inner) = Some((fault, passing));
    }

    /// Whether the fault is still to come.
    #[must_use]
    pub fn is_armed(&self) -> bool {
        self.state.armed.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// The number of requests with scripts that this link has received.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.state.requests.load(Ordering::SeqCst)
    }

    /// Waits until this many faults have struck.
    pub async fn struck(&self, count: usize) {
        let _ = self.state.struck.subscribe().wait_for(|struck| *struck >= count).await;
    }

    /// Breaks all connections.
    pub fn cut(&self) {
        self.state.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Breaks all connections, and accepts none until [`heal`](Self::heal).
    pub fn sever(&self) {
        self.state.refuses.store(true, Ordering::SeqCst);
        self.cut();
    }

    /// Holds everything back, in both directions, without a break.
    pub fn hold(&self) {
        self.state.held.send_replace(true);
    }

    /// Ends [`sever`](Self::sever) and [`hold`](Self::hold).
    pub fn heal(&self) {
        self.state.refuses.store(false, Ordering::SeqCst);
        self.state.held.send_replace(false);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut();
    }
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    while let Ok((client, _)) = listener.accept().await {
        if state.refuses.load(Ordering::SeqCst) {
            continue;
        }
        let state = Arc::clone(&state);
        // A cut from now on ends this connection, too.
        let mut cuts = state.cuts.subscribe();
        cuts.mark_unchanged();
        tokio::spawn(async move {
            let Ok(server) = TcpStream::connect(("127.0.0.1", state.server.load(Ordering::SeqCst))).await
            else {
                return;
            };
            let _ = (client.set_nodelay(true), server.set_nodelay(true));
            let ((from_client, to_client), (from_server, to_server)) =
                (client.into_split(), server.into_split());
            let (mute, _) = watch::channel(false);
            tokio::select! {
                _ = cuts.changed() => {}
                () = requests(&state, from_client, to_server, &mute) => {}
                () = replies(&state, from_server, to_client, &mute) => {}
            }
        });
    }
}

/// Passes requests on, until the connection breaks.
async fn requests(
    state: &State,
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mute: &watch::Sender<bool>,
) {
    let mut buffer = vec![0; 65_536];
    let mut held = state.held.subscribe();
    while let Ok(read) = from.read(&mut buffer).await {
        let Some(bytes) = buffer.get(..read).filter(|bytes| !bytes.is_empty()) else { return };
        let _ = held.wait_for(|held| !held).await;
        let scripts = count(bytes, b"EVALSHA");
        state.requests.fetch_add(scripts, Ordering::SeqCst);
        match state.strike(scripts) {
            Some(Fault::LoseRequest) => {
                state.struck.send_modify(|struck| *struck += 1);
                return;
            }
            Some(Fault::LoseReply) => {
                mute.send_replace(true);
            }
            None => {}
        }
        if to.write_all(bytes).await.is_err() {
            return;
        }
    }
}

/// Passes replies on, until the connection breaks.
async fn replies(state: &State, mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mute: &watch::Sender<bool>) {
    let mut buffer = vec![0; 65_536];
    let mut held = state.held.subscribe();
    while let Ok(read) = from.read(&mut buffer).await {
        let Some(bytes) = buffer.get(..read).filter(|bytes| !bytes.is_empty()) else { return };
        let _ = held.wait_for(|held| !held).await;
        if *mute.borrow() {
            // The reply is here, so the server has processed the request.
            state.struck.send_modify(|struck| *struck += 1);
            return;
        }
        if to.write_all(bytes).await.is_err() {
            return;
        }
    }
}

fn count(bytes: &[u8], word: &[u8]) -> usize {
    bytes.windows(word.len()).filter(|window| *window == word).count()
}

impl State {
    /// The fault that strikes these scripts.
    fn strike(&self, scripts: usize) -> Option<Fault> {
        let mut armed = self.armed.lock().unwrap_or_else(PoisonError::into_inner);
        let (fault, passing) = armed.as_mut()?;
        if *passing >= scripts {
            *passing -= scripts;
            return None;
        }
        let fault = *fault;
        *armed = None;
        Some(fault)
    }
}
