use super::handle::{Znodes, read_in_sync};
use crate::error::{Error, Operation, Refusal};
use crate::session::Session;
use crate::wire::{Data, Stat, WireError};
use crate::znode::path::ZnodePath;

impl Znodes {
    /// Reads the first of these nodes by one request, at one instant; `None` for a node that does not exist.
    ///
    /// The answer is for as many nodes as one request should read, by the sizes of the data that this session
    /// has read before, and for one at least. It ends before a node that must not be read; if that is the
    /// first, the call fails. Without a path it is empty, and nothing is sent.
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
        if let [path] = paths {
            return Ok(vec![self.read(path).await?]);
        }
        let whole = paths.iter().map(|path| self.manager.full_path(path)).collect::<Result<Vec<_>, _>>()?;
        let Some(first) = whole.first() else { return Ok(Vec::new()) };
        let whole = &whole;
        let read = |session: Session, deadline| async move {
            let room = session.reserve_reads(whole.len(), deadline).await?;
            let paths: Vec<String> = whole.iter().take(room.reads()).map(ZnodePath::to_string).collect();
            let data = || session.read(|wire| wire.data_of_all(&paths));
            let answers = read_in_sync(&session, data, deadline).await?;
            if answers.len() != paths.len() {
                return Err(WireError::Broken("not as many answers as reads".to_owned()));
            }
            room.answered(answers.iter().flatten().map(|(data, _)| data.len()));
            until_refused(answers)
        };
        self.until_read(Operation::Read, first, read).await
    }
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
