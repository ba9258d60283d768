//! Processes that a test kills, and replaces.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lockkeeper_tests::{Peer, PeerError, RawClient};
use rand::RngExt;
use rand::rngs::StdRng;
use tokio::sync::{Mutex as AsyncMutex, watch};

use super::fixture::{Failure, Outcome};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Java,
    Kazoo,
    Rust,
}

impl Language {
    async fn start(self, servers: &str, session: Duration) -> Result<Peer, PeerError> {
        match self {
            Self::Java => Peer::java(servers, session).await,
            Self::Kazoo => Peer::kazoo(servers, session).await,
            Self::Rust => Peer::program(Path::new(env!("CARGO_BIN_EXE_contender")), servers, session).await,
        }
    }
}

/// The current process of a language; a killed one is replaced.
pub(super) struct PeerSlot {
    language: Language,
    servers: String,
    session: Duration,
    peer: watch::Sender<Peer>,
    kills: AtomicUsize,
    /// Held during a kill and the start of the next process.
    killing: AsyncMutex<()>,
}

impl PeerSlot {
    /// Starts the first process. At most `kills` are killed.
    pub(super) async fn start(
        language: Language,
        servers: &str,
        session: Duration,
        kills: usize,
    ) -> Result<Self, PeerError> {
        let peer = watch::Sender::new(language.start(servers, session).await?);
        let (servers, kills) = (servers.to_owned(), AtomicUsize::new(kills));
        Ok(Self { language, servers, session, peer, kills, killing: AsyncMutex::new(()) })
    }

    pub(super) fn language(&self) -> Language {
        self.language
    }

    /// The current process, and a receiver that is notified when it is replaced.
    pub(super) fn peer(&self) -> (Peer, watch::Receiver<Peer>) {
        let mut replaced = self.peer.subscribe();
        let peer = replaced.borrow_and_update().clone();
        (peer, replaced)
    }

    /// Asks the current process, which may be killed meanwhile. `None` if it was; there is another one by
    /// then.
    ///
    /// A request of a recipe takes some requests to the server: the kill comes before, between or behind
    /// them.
    pub(super) async fn ask(
        &self,
        request: &str,
        client: &mut RawClient,
        rng: &mut StdRng,
    ) -> Result<Option<String>, Failure> {
        let (peer, mut replaced) = self.peer();
        let kill = async {
            if !self.is_to_die(rng) {
                return Ok(());
            }
            for _ in 0..rng.random_range(0..6) {
                client.exists("/").await?;
            }
            self.die().await
        };
        let (answer, killed) = tokio::join!(peer.ask(request), kill);
        killed?;
        match answer {
            Ok(answer) => Ok(Some(answer)),
            Err(PeerError::Ended { .. }) => {
                replaced.changed().await?;
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Kills the process (SIGKILL), and starts another one.
    pub(super) async fn die(&self) -> Outcome {
        let _killing = self.killing.lock().await;
        let peer = self.peer.borrow().clone();
        peer.kill().await?;
        self.peer.send_replace(self.language.start(&self.servers, self.session).await?);
        Ok(())
    }

    /// Decides at random whether to use one of the remaining kills now.
    pub(super) fn is_to_die(&self, rng: &mut StdRng) -> bool {
        rng.random_bool(0.3)
            && self
                .kills
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |kills| kills.checked_sub(1))
                .is_ok()
    }

    pub(super) fn kills_left(&self) -> usize {
        self.kills.load(Ordering::SeqCst)
    }
}
