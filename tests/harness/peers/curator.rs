//! A Java service that takes locks with Apache Curator.

use std::sync::Arc;
use std::time::Duration;

use super::dialogue::Dialogue;
use super::driver::Driver;
use super::error::PeerError;
use crate::timing::Timing;
use crate::version::Version;

/// A Java process with one `CuratorFramework`, and so one session. Clones are the same process.
///
/// It dies with this process, and when the last clone and the last of its threads are dropped: its session
/// then expires, as that of a crashed service does.
///
/// # Examples
///
/// ```no_run
/// # use std::time::Duration;
/// # use lockkeeper_tests::{CuratorPeer, Ensemble};
/// # async fn test() -> Result<(), Box<dyn std::error::Error>> {
/// let ensemble = Ensemble::start(1).await?;
/// let java = CuratorPeer::start(&ensemble.connect_string(), Duration::from_secs(4)).await?;
/// let grant = java.thread("a").acquire("/locks/a").await?;
/// assert_eq!(java.participants("/locks/a").await?, [grant.node]);
/// java.thread("a").release("/locks/a").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct CuratorPeer {
    dialogue: Arc<Dialogue>,
    session: i64,
    version: Version,
    has_discovery: bool,
}

/// A thread of a [`CuratorPeer`]. Curator's locks belong to threads: only the thread that acquired one may
/// release it, or acquire it again at once.
///
/// It executes one request after the other: a release during an acquire waits for that.
#[derive(Clone, Debug)]
pub struct CuratorThread {
    dialogue: Arc<Dialogue>,
    name: String,
}

/// The grant of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CuratorGrant {
    /// The transaction that created the node: Curator has no fencing token, and this is what one would be.
    pub czxid: u64,
    /// The path of the node.
    pub node: String,
}

impl CuratorPeer {
    /// Starts a process and waits until it is connected. `session_timeout` is what it asks for: the servers
    /// have the last word.
    ///
    /// # Errors
    ///
    /// [`PeerError::NotInstalled`] without Curator and a JDK; otherwise what kept it from connecting.
    pub async fn start(servers: &str, session_timeout: Duration) -> Result<Self, PeerError> {
        let driver = Driver::compiled().await?;
        let (dialogue, session) = Dialogue::start(driver.command(servers, session_timeout)).await?;
        let session =
            u64::from_str_radix(&session, 16).map_err(|_| PeerError::malformed(&session))?.cast_signed();
        Ok(Self {
            dialogue: Arc::new(dialogue),
            session,
            version: driver.version(),
            has_discovery: driver.has_discovery(),
        })
    }

    /// The session it started with.
    #[must_use]
    pub fn session(&self) -> i64 {
        self.session
    }

    /// The version of Curator.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// Whether the process can be asked for services: Debian has `curator-x-discovery` in a package of its
    /// own.
    #[must_use]
    pub fn has_discovery(&self) -> bool {
        self.has_discovery
    }

    /// The number of the process; `None` once it was seen to end.
    pub async fn pid(&self) -> Option<u32> {
        self.dialogue.pid().await
    }

    /// The thread of that name, made when it is first asked for something.
    ///
    /// # Panics
    ///
    /// If there is a blank in the name: the driver is asked in words.
    #[must_use]
    pub fn thread(&self, name: &str) -> CuratorThread {
        assert!(!name.contains(' '), "a blank in {name:?}");
        CuratorThread { dialogue: Arc::clone(&self.dialogue), name: name.to_owned() }
    }

    /// `InterProcessMutex.getParticipantNodes`: the paths of all contenders, in Curator's order.
    ///
    /// # Errors
    ///
    /// [`PeerError::Failed`] with what Curator threw. So do all requests below.
    pub async fn participants(&self, path: &str) -> Result<Vec<String>, PeerError> {
        let answer = self.dialogue.ask(&format!("participants {path}"), Timing::event()).await?;
        Ok(answer.split_whitespace().map(str::to_owned).collect())
    }

    /// The data of a node, as text.
    ///
    /// # Errors
    ///
    /// As [`CuratorPeer::participants`].
    pub async fn data(&self, node: &str) -> Result<String, PeerError> {
        self.dialogue.ask(&format!("data {node}"), Timing::event()).await
    }

    /// Closes the session, which frees its locks, and waits for the end of the process.
    ///
    /// # Errors
    ///
    /// As [`CuratorPeer::participants`].
    pub async fn exit(&self) -> Result<(), PeerError> {
        self.dialogue.ask("exit", Timing::event()).await?;
        self.dialogue.ended().await
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

impl CuratorThread {
    /// Waits for the lock, at most for as long as a test waits for anything.
    ///
    /// # Errors
    ///
    /// [`PeerError::Timeout`], after which the thread waits on; else as [`CuratorPeer::participants`].
    pub async fn acquire(&self, path: &str) -> Result<CuratorGrant, PeerError> {
        self.wait("acquire", path).await
    }

    /// Waits for the lock for at most `timeout` by Curator's clock; `None` after a timeout. Zero is one try.
    ///
    /// # Errors
    ///
    /// As [`CuratorPeer::participants`].
    pub async fn acquire_timeout(
        &self,
        path: &str,
        timeout: Duration,
    ) -> Result<Option<CuratorGrant>, PeerError> {
        self.wait_at_most("acquire", path, timeout).await
    }

    /// Gives one acquire back; the last one frees the lock.
    ///
    /// # Errors
    ///
    /// As [`CuratorPeer::participants`].
    pub async fn release(&self, path: &str) -> Result<(), PeerError> {
        self.ask("release", path, "", Timing::event()).await.map(|_| ())
    }

    /// As [`acquire`](Self::acquire), for the reading side of an `InterProcessReadWriteLock`.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire).
    pub async fn read(&self, path: &str) -> Result<CuratorGrant, PeerError> {
        self.wait("read", path).await
    }

    /// As [`acquire_timeout`](Self::acquire_timeout), for the reading side.
    ///
    /// # Errors
    ///
    /// As [`CuratorPeer::participants`].
    pub async fn read_timeout(
        &self,
        path: &str,
        timeout: Duration,
    ) -> Result<Option<CuratorGrant>, PeerError> {
        self.wait_at_most("read", path, timeout).await
    }

    /// Gives one read back.
    ///
    /// # Errors
    ///
    /// As [`CuratorPeer::participants`].
    pub async fn end_read(&self, path: &str) -> Result<(), PeerError> {
        self.ask("unread", path, "", Timing::event()).await.map(|_| ())
    }

    /// As [`acquire`](Self::acquire), for the writing side of an `InterProcessReadWriteLock`.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire).
    pub async fn write(&self, path: &str) -> Result<CuratorGrant, PeerError> {
        self.wait("write", path).await
    }

    /// As [`acquire_timeout`](Self::acquire_timeout), for the writing side.
    ///
    /// # Errors
    ///
    /// As [`CuratorPeer::participants`].
    pub async fn write_timeout(
        &self,
        path: &str,
        timeout: Duration,
    ) -> Result<Option<CuratorGrant>, PeerError> {
        self.wait_at_most("write", path, timeout).await
    }

    /// Gives one write back.
    ///
    /// # Errors
    ///
    /// As [`CuratorPeer::participants`].
    pub async fn end_write(&self, path: &str) -> Result<(), PeerError> {
        self.ask("unwrite", path, "", Timing::event()).await.map(|_| ())
    }

    async fn wait(&self, verb: &str, path: &str) -> Result<CuratorGrant, PeerError> {
        let answer = self.ask(verb, path, " -1", Timing::settle()).await?;
        granted(&answer)?.ok_or_else(|| PeerError::malformed(answer))
    }

    async fn wait_at_most(
        &self,
        verb: &str,
        path: &str,
        timeout: Duration,
    ) -> Result<Option<CuratorGrant>, PeerError> {
        let milliseconds = format!(" {}", timeout.as_millis());
        granted(&self.ask(verb, path, &milliseconds, timeout + Timing::event()).await?)
    }

    pub(super) async fn ask(
        &self,
        verb: &str,
        path: &str,
        rest: &str,
        limit: Duration,
    ) -> Result<String, PeerError> {
        self.dialogue.ask(&format!("{verb} {} {path}{rest}", self.name), limit).await
    }
}

pub(super) fn granted(answer: &str) -> Result<Option<CuratorGrant>, PeerError> {
    if answer.is_empty() {
        return Ok(None);
    }
    let grant = answer
        .split_once(' ')
        .and_then(|(czxid, node)| Some(CuratorGrant { czxid: czxid.parse().ok()?, node: node.to_owned() }));
    grant.map(Some).ok_or_else(|| PeerError::malformed(answer))
}
