use std::sync::atomic::Ordering;

use super::handle::{Znodes, read_in_sync};
use crate::error::{Error, Operation, Refusal};
use crate::session::{Session, Suspect};
use crate::time::deadline::Deadline;
use crate::wire::{Data, Reply, Stat, WireError};
use crate::znode::path::ZnodePath;

impl Znodes {
    /// Reads the first of these nodes by one request, at one instant: `None` for a node that does not exist.
    ///
    /// The answer is for as many nodes as one request should read, by the sizes of the data that this session
    /// has read before, and for one at least. It ends before a node that must not be read. If that is the
    /// first one, the call fails. Servers that do not know such a request answer for one node. Without a path
    /// the answer is empty, and nothing is sent.
    ///
    /// # Errors
    ///
    /// As those of [`read`](Self::read).
    ///
    /// # Session loss
    ///
    /// Goes on in the next session.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the call changes nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = lockkeeper_testserver::TestServer::start().await?;
    /// # let servers = server.connect_string();
    /// use lockkeeper_core::{ConnectionManager, CreateMode, ZnodePath};
    ///
    /// let manager = ConnectionManager::connect(&servers).await?; // host:port,host:port,…
    /// manager.znodes().create("/a", b"1", CreateMode::Persistent).await?;
    ///
    /// let paths: [ZnodePath; 2] = ["/a".parse()?, "/b".parse()?];
    /// let mut left = &paths[..];
    /// while !left.is_empty() {
    ///     let nodes = manager.znodes().read_first(left).await?;
    ///     left = left.get(nodes.len()..).unwrap_or_default();
    ///     for node in nodes.into_iter().flatten() {
    ///         assert_eq!(node.0, b"1");
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn read_first(&self, paths: &[ZnodePath]) -> Result<Vec<Option<(Vec<u8>, Stat)>>, Error> {
        if paths.len() < 2 {
            return self.read_first_alone(paths).await;
        }
        let whole = paths.iter().map(|path| self.manager.full_path(path)).collect::<Result<Vec<_>, _>>()?;
        let Some(first) = whole.first() else { return Ok(Vec::new()) };
        let whole = &whole;
        let read = |session: Session, deadline| async move {
            if session.settings().lacks_multi_read.load(Ordering::Relaxed) {
                return Err(WireError::Refused(Refusal::Unimplemented));
            }
            let room = session.reserve_reads(whole.len(), deadline).await?;
            let paths: Vec<String> = whole.iter().take(room.reads()).map(ZnodePath::to_string).collect();
            let answers =
                match read_in_sync(&session, || data_of_all(&session, &paths, deadline), deadline).await {
                    // Some servers close the connection on such a request instead of refusing it.
                    Err(WireError::Broken(_)) if session.hangs_up_on(Suspect::MultiRead) => {
                        return Err(WireError::Refused(Refusal::Unimplemented));
                    }
                    Err(refused @ WireError::Refused(Refusal::Unimplemented)) => {
                        session.settings().lacks_multi_read.store(true, Ordering::Relaxed);
                        return Err(refused);
                    }
                    answers => answers?,
                };
            if answers.len() != paths.len() {
                return Err(WireError::Broken("not as many answers as reads".to_owned()));
            }
            room.answered(answers.iter().flatten().map(|(data, _)| data.len()));
            until_refused(answers)
        };
        match self.until_read(Operation::Read, first, read).await {
            // The servers do not read several nodes at once.
            Err(Error::Refused { refusal: Refusal::Unimplemented, .. }) => self.read_first_alone(paths).await,
            read => read,
        }
    }

    async fn read_first_alone(&self, paths: &[ZnodePath]) -> Result<Vec<Option<(Vec<u8>, Stat)>>, Error> {
        match paths.first() {
            Some(first) => Ok(vec![self.read(first).await?]),
            None => Ok(Vec::new()),
        }
    }
}

/// The data of all these nodes by one request, which some servers do not know.
fn data_of_all(session: &Session, paths: &[String], deadline: Deadline) -> Reply<Vec<Result<Data, Refusal>>> {
    let (session, paths) = (session.clone(), paths.to_vec());
    Box::pin(async move {
        let send = || session.read(|wire| wire.data_of_all(&paths));
        session.send_suspect(Suspect::MultiRead, deadline, send).await.await
    })
}

/// The nodes before the first one that must not be read.
fn until_refused(answers: Vec<Result<Data, Refusal>>) -> Result<Vec<Option<Data>>, WireError> {
    let mut nodes = Vec::with_capacity(answers.len());
    for answer in answers {
        match answer {
            Ok(node) => nodes.push(Some(node)),
            Err(Refusal::NoNode) => nodes.push(None),
            Err(refusal) if nodes.is_empty() => return Err(WireError::Refused(refusal)),
            Err(_) => break,
        }
    }
    Ok(nodes)
}
