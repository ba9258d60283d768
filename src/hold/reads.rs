//! The reads of a contender outside its queue: the nodes that decide whether the hold is useful to it.

use std::sync::Arc;

use futures::future::join_all;
use futures::{FutureExt, TryFutureExt};
use parking_lot::Mutex;
use tracing::debug;

use crate::error::{Error, Operation, Refusal};
use crate::session::{NodeWatch, Observation, OwnedNode, Reservation, Session};
use crate::time::deadline::Deadline;
use crate::wire::{Reply, Stat, WireError};
use crate::znode::path::ZnodePath;

/// A node to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read {
    /// The names of its children.
    Children(ZnodePath),
    /// Its data.
    Data(ZnodePath),
    /// Its data at this moment. A later change is not of interest, and not reported.
    DataOnce(ZnodePath),
}

/// The result of a [`Read`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadResult {
    /// The children of the node, in no order.
    Children {
        /// Their names.
        names: Vec<String>,
        /// The stat of the node itself.
        stat: Stat,
    },
    /// The data of the node.
    Data {
        /// The bytes.
        data: Vec<u8>,
        /// The node's stat.
        stat: Stat,
    },
    /// The node does not exist.
    Missing,
}

/// Reports that a node that was read has changed, or may have.
#[derive(Debug)]
#[must_use]
pub struct Changes(Observation);

impl Changes {
    /// Resolves when a node has changed, or may have: read again then.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a later call reports the same change.
    pub async fn any(&mut self) {
        self.0.changed().await;
    }
}

/// The nodes to read, and the reads that were already sent.
#[derive(Default)]
pub(crate) struct Prefetch {
    reads: Arc<[Read]>,
    /// The replies to reads that were sent behind the list that granted the hold.
    // Never locked: the mutex only makes the replies shareable, since a reply may be sent to another thread
    // but not shared.
    prefetched: Mutex<Option<Vec<Reply<ReadResult>>>>,
    /// The connection that carried the last reads.
    seen_on: Option<u64>,
}

impl Prefetch {
    pub(crate) fn new(reads: &Arc<[Read]>) -> Self {
        Self { reads: Arc::clone(reads), prefetched: Mutex::default(), seen_on: None }
    }

    /// Sends all reads now, over `connection`. Without a link a later connection would carry them, and it is
    /// not known which: they are sent when the hold asks for them.
    pub(crate) fn send(reads: &Arc<[Read]>, session: &Session, connection: Option<u64>) -> Self {
        if connection.is_none() {
            return Self::new(reads);
        }
        let replies = send_all(reads, session);
        Self { reads: Arc::clone(reads), prefetched: Mutex::new(Some(replies)), seen_on: connection }
    }

    /// Forgets the reads that were sent with the create: they are stale.
    pub(crate) fn forget_prefetched(&mut self) {
        *self.prefetched.get_mut() = None;
        self.seen_on = None;
    }

    /// Whether the present connection carried the last reads, if there were any.
    pub(crate) fn is_current(&self, session: &Session) -> bool {
        self.seen_on.is_none_or(|seen_on| Some(seen_on) == session.connection())
    }

    pub(crate) async fn read(
        &mut self,
        node: &OwnedNode,
        deadline: Deadline,
    ) -> Result<Vec<ReadResult>, Error> {
        let session = node.session().clone();
        // Without the lease or the node, the reads would not happen under the hold.
        node.settle()?;
        loop {
            let mut replies = match self.prefetched.get_mut().take() {
                Some(replies) => replies,
                None => {
                    let Some(asked_on) = self.caught_up(node, deadline).await? else {
                        continue;
                    };
                    self.seen_on = Some(asked_on);
                    send_all(&self.reads, &session)
                }
            };
            let answers =
                join_all(replies.iter_mut().map(|reply| session.await_reply(reply, deadline))).await;
            match self.interpret(answers, &self.reads, node, deadline).await? {
                Some(results) if self.is_current(&session) => return Ok(results),
                _ => debug!("reading again"),
            }
        }
    }

    pub(crate) async fn watch(
        &mut self,
        node: &OwnedNode,
        deadline: Deadline,
    ) -> Result<(Vec<ReadResult>, Changes), Error> {
        let session = node.session().clone();
        node.settle()?;
        // Earlier reads are older than what is read now.
        self.forget_prefetched();
        loop {
            let asked_on = self.caught_up(node, deadline).await?;
            if asked_on.is_none() {
                continue;
            }
            self.seen_on = asked_on;
            let mut replies: Vec<_> = self.reads.iter().map(|read| read.observe(&session)).collect();
            let answers =
                join_all(replies.iter_mut().map(|reply| session.await_reply(reply, deadline))).await;
            let (mut results, mut watches) = (Vec::new(), Vec::new());
            for (answer, read) in answers.into_iter().zip(&*self.reads) {
                results.push(answer.map(|(result, watch)| {
                    if !matches!(read, Read::DataOnce(_)) {
                        watches.push(watch);
                    }
                    result
                }));
            }
            let changes = Changes(Observation::new(&session, asked_on, watches));
            let results = self.interpret(results, &self.reads, node, deadline).await?;
            if let Some(results) = results.filter(|_| self.is_current(&session)) {
                return Ok((results, changes));
            }
        }
    }

    /// Ensures that this connection shows what earlier ones have shown, and returns it. A contender that an
    /// event made the head may have moved to a server that lags behind.
    async fn caught_up(&self, node: &OwnedNode, deadline: Deadline) -> Result<Option<u64>, Error> {
        let caught_up = node.session().ensure_synced(deadline).await;
        node.settle()?;
        match caught_up {
            // Not the present number, which may be another by now.
            Ok(connection) => Ok(Some(connection)),
            Err(error) => {
                let retry = node.session().retry_after(&error, Operation::Read, node.path(), deadline);
                retry.await.map(|()| None).map_err(|stop| node.error_of(stop))
            }
        }
    }

    /// All results, or `None` when the reads have to be sent again.
    async fn interpret(
        &self,
        answers: Vec<Result<ReadResult, WireError>>,
        reads: &[Read],
        node: &OwnedNode,
        deadline: Deadline,
    ) -> Result<Option<Vec<ReadResult>>, Error> {
        node.settle()?;
        let mut results = Vec::new();
        for (answer, read) in answers.into_iter().zip(reads) {
            match answer {
                Ok(result) => results.push(result),
                Err(error) => {
                    let path = read.path().as_str();
                    let retry = node.session().retry_after(&error, read.operation(), path, deadline);
                    return retry.await.map(|()| None).map_err(|stop| node.error_of(stop));
                }
            }
        }
        Ok(Some(results))
    }
}

impl Read {
    /// The path of the node to read.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        match self {
            Self::Children(path) | Self::Data(path) | Self::DataOnce(path) => path,
        }
    }

    pub(crate) fn at(&self, path: ZnodePath) -> Self {
        match self {
            Self::Children(_) => Self::Children(path),
            Self::Data(_) => Self::Data(path),
            Self::DataOnce(_) => Self::DataOnce(path),
        }
    }

    fn operation(&self) -> Operation {
        match self {
            Self::Children(_) => Operation::List,
            Self::Data(_) | Self::DataOnce(_) => Operation::Read,
        }
    }

    /// Sends the read now, with a watch if a later change is of interest and there is room for one.
    fn observe(&self, session: &Session) -> Reply<(ReadResult, Option<NodeWatch>)> {
        match self {
            Self::Children(path) | Self::Data(path) => {
                self.send_in(session, session.watch_budget().reserve(path.as_str()))
            }
            Self::DataOnce(_) => self.send_in(session, None),
        }
    }

    fn send_in(
        &self,
        session: &Session,
        room: Option<Reservation>,
    ) -> Reply<(ReadResult, Option<NodeWatch>)> {
        let path = self.path().as_str();
        let reply = match self {
            Self::Children(_) => {
                let reply = session.observe_children(path, room);
                reply.map_ok(|(names, stat, watch)| (ReadResult::Children { names, stat }, watch)).boxed()
            }
            Self::Data(_) | Self::DataOnce(_) => {
                let reply = session.observe_data(path, room);
                reply.map_ok(|(data, stat, watch)| (ReadResult::Data { data, stat }, watch)).boxed()
            }
        };
        let reply = reply.map(|answer| match answer {
            // A node that does not exist is not watched either.
            Err(WireError::Refused(Refusal::NoNode)) => Ok((ReadResult::Missing, None)),
            answer => answer,
        });
        reply.boxed()
    }
}

fn send_all(reads: &[Read], session: &Session) -> Vec<Reply<ReadResult>> {
    reads.iter().map(|read| read.send_in(session, None).map_ok(|(result, _)| result).boxed()).collect()
}
