use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::process::Command;

use super::curator::{CuratorGrant, granted};
use super::dialogue::Dialogue;
use super::error::PeerError;
use super::{driver, python};
use crate::timing::Timing;

/// A process that takes locks by any library, asked in the words of the driver it runs; see the first lines
/// of those in `tests/peers/` and of `tests/contender/`. Clones are the same process, which dies with the
/// last of them.
#[derive(Clone, Debug)]
pub struct Peer {
    dialogue: Arc<Dialogue>,
}

impl Peer {
    /// A Java process with Apache Curator.
    ///
    /// # Errors
    ///
    /// [`PeerError::NotInstalled`] without Curator and a JDK; otherwise what kept it from connecting.
    pub async fn java(servers: &str, session_timeout: Duration) -> Result<Self, PeerError> {
        Self::start(driver::Driver::compiled().await?.command(servers, session_timeout)).await
    }

    /// A Python process with kazoo, which is fetched by pip when it is first asked for, pinned by version and
    /// checksum.
    ///
    /// # Errors
    ///
    /// [`PeerError::NotInstalled`] without Python, [`PeerError::NotFetched`] without kazoo; otherwise what
    /// kept it from connecting.
    pub async fn kazoo(servers: &str, session_timeout: Duration) -> Result<Self, PeerError> {
        Self::start(python::Kazoo::fetched().await?.command(servers, session_timeout)).await
    }

    /// Any other program that speaks as these do.
    ///
    /// # Errors
    ///
    /// The reason why it could not connect.
    pub async fn program(
        program: &Path,
        servers: &str,
        session_timeout: Duration,
    ) -> Result<Self, PeerError> {
        let mut command = Command::new(program);
        command.args(["peer", servers, &session_timeout.as_millis().to_string()]);
        Self::start(command).await
    }

    async fn start(command: Command) -> Result<Self, PeerError> {
        let (dialogue, _) = Dialogue::start(command).await?;
        Ok(Self { dialogue: Arc::new(dialogue) })
    }

    /// Asks one of its threads, in its own words; yields its answer.
    ///
    /// # Errors
    ///
    /// [`PeerError::Failed`] with what the library threw, [`PeerError::Ended`] when the process has ended,
    /// [`PeerError::Timeout`] when it does not answer for as long as a test waits for anything.
    pub async fn ask(&self, request: &str) -> Result<String, PeerError> {
        self.dialogue.ask(request, Timing::settle()).await
    }

    /// Waits for a lock without end, by the verb `acquire`, `read` or `write`.
    ///
    /// # Errors
    ///
    /// As [`ask`](Self::ask).
    pub async fn take(&self, verb: &str, thread: &str, path: &str) -> Result<CuratorGrant, PeerError> {
        let answer = self.ask(&format!("{verb} {thread} {path} -1")).await?;
        granted(&answer)?.ok_or_else(|| PeerError::malformed(answer))
    }

    /// Waits for a lock for that long by the peer's clock; `None` if in vain.
    ///
    /// # Errors
    ///
    /// As [`ask`](Self::ask).
    pub async fn take_within(
        &self,
        verb: &str,
        thread: &str,
        path: &str,
        timeout: Duration,
    ) -> Result<Option<CuratorGrant>, PeerError> {
        granted(&self.ask(&format!("{verb} {thread} {path} {}", timeout.as_millis())).await?)
    }

    /// Kills the process (SIGKILL) and waits for its end. Its session lives on until it expires.
    ///
    /// # Errors
    ///
    /// [`PeerError::Io`] if the system does not let us.
    pub async fn kill(&self) -> Result<(), PeerError> {
        self.dialogue.kill().await
    }
}
