//! The requests of a session, and the wait for their replies.

use tracing::{error, warn};

use super::handle::Session;
use super::hang_ups::Suspect;
use super::watches::{PathWatch, ReadRoom, ReadWindow};
use super::zxid_history::{SeenBefore, ServersReset};
use crate::error::{LossReason, Refusal};
use crate::time::boot::BootInstant;
use crate::time::deadline::Deadline;
use crate::time::fractions;
use crate::wire::{
    CreateMode, CreateOptions, Created, Data, MultiError, Reply, Stat, WatchDepth, Wire, WireError, WriteOp,
    WriteResult,
};
use crate::znode::zxid::Zxid;

/// The answer to a transaction.
pub(crate) type Committed = Result<Vec<WriteResult>, MultiError>;

/// A connection that is up may answer nothing for this many session timeouts.
const SILENT_TIMEOUTS_MAX: u32 = 4;

impl Session {
    /// Waits for a reply until the session ends, the deadline passes, or the limit of one request passes: the
    /// session timeout, or the operation timeout if that is longer. A shorter operation timeout is a deadline
    /// of its callers. It does not end a single request here, because a waiter would repeat it.
    pub(crate) async fn await_reply<T>(
        &self,
        reply: &mut Reply<T>,
        deadline: Deadline,
    ) -> Result<T, WireError> {
        let limit = deadline.or_after(self.timeout().max(self.settings().operation_timeout));
        let begun = self.now();
        let result = tokio::select! {
            biased;
            result = reply => result,
            _ = self.ended() => Err(self.over()),
            () = limit.passed() => Err(WireError::Timeout),
        };
        match &result {
            // Nothing was sent, so no server has answered.
            Err(WireError::Refused(Refusal::SessionFull)) => {}
            Ok(_) | Err(WireError::Refused(_)) => self.connections().answered(),
            Err(WireError::SessionEnded(reason)) => self.end(*reason),
            Err(WireError::Timeout) => self.had_no_answer(begun),
            Err(_) => {}
        }
        result
    }

    /// The client considers a connection healthy as long as it receives bytes, even if they never form an
    /// answer: after one wrong length it waits for everything that follows. Only a new session helps then.
    fn had_no_answer(&self, begun: BootInstant) {
        let (now, max) = (self.now(), self.timeout() * SILENT_TIMEOUTS_MAX);
        // A request with a short deadline proves nothing.
        let is_long = now.since(begun) >= fractions::silence_min(self.timeout());
        if is_long && self.connections().had_no_answer(max, begun, now) {
            warn!(
                epoch = self.epoch().0, purpose = %self.settings().purpose,
                "no answer for long on a connection that is up; giving the session up"
            );
            self.end(LossReason::LeaseRanOut);
        }
    }

    /// Ensures that a read that follows shows everything that this session has learned.
    ///
    /// A watch event does not raise the zxid by which a server that is behind refuses a client. A contender
    /// that was granted a lock by an event, and is then moved to such a server, would read old data. One
    /// sync with the quorum per connection prevents this. Returns the number of the connection when the sync
    /// was asked for: if that is the present one, it is in sync.
    pub(crate) async fn ensure_synced(&self, deadline: Deadline) -> Result<u64, WireError> {
        let connection = self.wire()?.connection_id();
        if self.connections().is_synced(connection) {
            return Ok(connection);
        }
        let mut sync = self.quorum_sync();
        self.await_reply(&mut sync, deadline).await?;
        self.connections().set_synced(connection);
        Ok(connection)
    }

    /// Sends a read now; the reply is awaited later.
    pub(crate) fn read<T: Send + 'static>(&self, send: impl FnOnce(&dyn Wire) -> Reply<T>) -> Reply<T> {
        match self.wire() {
            Ok(wire) => send(&*wire),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    /// Sends a write now; the reply is awaited later. A success confirms the lease.
    pub(crate) fn write<T: Send + 'static>(&self, send: impl FnOnce(&dyn Wire) -> Reply<T>) -> Reply<T> {
        let wire = match self.wire() {
            Ok(wire) => wire,
            Err(error) => return Box::pin(std::future::ready(Err(error))),
        };
        let (connection, sent) = (wire.connection_id(), self.now());
        let reply = send(&*wire);
        let session = self.clone();
        Box::pin(async move {
            let result = reply.await;
            if result.is_ok() {
                session.confirmed(connection, sent);
            }
            result
        })
    }

    /// Creates a node, and checks that this session owns it.
    pub(crate) fn create(&self, path: &str, data: &[u8], mode: CreateMode) -> Reply<Created> {
        self.create_with(path, data, &mode.into())
    }

    /// As [`create`](Self::create), with these options.
    pub(crate) fn create_with(&self, path: &str, data: &[u8], options: &CreateOptions) -> Reply<Created> {
        let wire = match self.wire() {
            Ok(wire) => wire,
            Err(error) => return Box::pin(std::future::ready(Err(error))),
        };
        let (connection, sent) = (wire.connection_id(), self.now());
        let before = self.settings().zxids.before_write();
        let reply = wire.create(path, data, options);
        let session = self.clone();
        let is_ephemeral = matches!(options.mode, CreateMode::Ephemeral | CreateMode::EphemeralSequential);
        Box::pin(async move {
            let created = reply.await?;
            session.confirmed(connection, sent);
            if let Some(stat) = created.stat {
                session.observe_server_time(stat.ctime);
                session.wrote(before, stat.czxid);
            }
            if let (true, Some(stat)) = (is_ephemeral, created.stat) {
                session.verify_owner(&created.path, &stat)?;
                // This connection created a node of this session, so it carries this session.
                session.verified(connection);
            }
            Ok(created)
        })
    }

    /// Compares a node's owner with this session. Some servers silently replace the session on reconnect.
    pub(crate) fn verify_owner(&self, path: &str, stat: &Stat) -> Result<(), WireError> {
        if stat.ephemeral_owner == self.id() {
            return Ok(());
        }
        warn!(path, owner = stat.ephemeral_owner, session = self.id(), "the server replaced our session");
        self.end(LossReason::SessionReplaced);
        Err(self.over())
    }

    /// Sends a transaction now; the reply is awaited later. A refusal by the quorum confirms the lease as
    /// much as a success.
    pub(crate) fn send_multi(&self, operations: &[WriteOp]) -> Reply<Committed> {
        let wire = match self.wire() {
            Ok(wire) => wire,
            Err(error) => return Box::pin(std::future::ready(Err(error))),
        };
        let (connection, sent) = (wire.connection_id(), self.now());
        let before = self.settings().zxids.before_write();
        let commit = wire.multi(operations);
        let session = self.clone();
        Box::pin(async move {
            match commit.await {
                Err(MultiError::Request(error)) => Err(error),
                answered => {
                    session.confirmed(connection, sent);
                    if let Some(time) = answered.iter().flatten().filter_map(WriteResult::time).max() {
                        session.observe_server_time(time);
                    }
                    // The stat of a create is left out: servers before 3.8.2 send none, and any bytes in its
                    // place may read as one (ZOOKEEPER-4026).
                    if let Some(zxid) = answered.iter().flatten().find_map(WriteResult::written_zxid) {
                        session.wrote(before, zxid);
                    }
                    Ok(answered)
                }
            }
        })
    }

    /// As [`send_multi`](Self::send_multi), and waits for the reply.
    pub(crate) async fn multi(&self, operations: &[WriteOp], deadline: Deadline) -> Committed {
        let mut reply = self.send_multi(operations);
        self.await_reply(&mut reply, deadline).await.map_err(MultiError::Request)?
    }

    /// Ensures that every read behind it shows all that was committed before. It is a transaction of one
    /// check, which the servers propose as any other write. A `sync` is also answered by a leader that was
    /// deposed and does not know it, and by one that has not applied all that it has committed.
    pub(crate) fn quorum_sync(&self) -> Reply<()> {
        let check = WriteOp::Check { path: "/".to_owned(), version: None };
        let reply = self.send_multi(&[check]);
        Box::pin(async move {
            match reply.await? {
                // A refusal is an answer of the quorum as well.
                Ok(_) | Err(MultiError::Operation { .. }) => Ok(()),
                Err(MultiError::Request(error)) => Err(error),
            }
        })
    }

    /// Watches a path, for as long as the connection lasts. Returns `None` without room for the path, and on
    /// servers that close the connection on such a watch.
    ///
    /// The events come before the answers to reads that show what happened.
    pub(crate) async fn watch_path(
        &self,
        path: &str,
        depth: WatchDepth,
        deadline: Deadline,
    ) -> Result<Option<PathWatch>, WireError> {
        if self.hangs_up_on(Suspect::PathWatch) {
            warn!(path, "the servers close the connection on the watch of a view, which polls instead");
            return Ok(None);
        }
        let Some(mut watch) = self.watches().reserve_path(path) else { return Ok(None) };
        let send = || watch.send(path, depth, |depth| self.read(|wire| wire.watch_all_changes(path, depth)));
        let mut reply = self.send_suspect(Suspect::PathWatch, deadline, send).await;
        let paths = self.await_reply(&mut reply, deadline).await?;
        Ok(Some(watch.answered(paths)))
    }

    pub(crate) fn read_window(&self) -> &ReadWindow {
        self.watches().read_window()
    }

    /// Waits for room for one read of a node's data.
    pub(crate) async fn reserve_read(&self, deadline: Deadline) -> Result<ReadRoom, WireError> {
        self.reserve_reads(1, deadline).await
    }

    /// Waits for room for one request that reads the data of `max` nodes at most.
    pub(crate) async fn reserve_reads(&self, max: usize, deadline: Deadline) -> Result<ReadRoom, WireError> {
        tokio::select! {
            biased;
            room = self.read_window().reserve(max) => Ok(room),
            _ = self.ended() => Err(self.over()),
            () = deadline.passed() => Err(WireError::Timeout),
        }
    }

    /// Reads a node that is one of many, once there is room for it.
    pub(crate) async fn read_one_of_many(&self, path: &str, deadline: Deadline) -> Result<Data, WireError> {
        let room = self.reserve_read(deadline).await?;
        let mut reply: Reply<Data> = self.read(|wire| wire.data(path));
        let answer = self.await_reply(&mut reply, deadline).await;
        room.answered(answer.iter().map(|(data, _)| data.len()));
        answer
    }

    /// Sends a write of a node's data now; the reply is awaited later.
    pub(crate) fn set_data(&self, path: &str, data: &[u8], version: Option<i32>) -> Reply<Stat> {
        let before = self.settings().zxids.before_write();
        let reply = self.write(|wire| wire.set_data(path, data, version));
        let session = self.clone();
        Box::pin(async move {
            let stat = reply.await?;
            session.observe_server_time(stat.mtime);
            session.wrote(before, stat.mzxid);
            Ok(stat)
        })
    }

    /// Records the transaction of a write.
    fn wrote(&self, before: SeenBefore, zxid: Zxid) {
        if let Some(ServersReset { seen, now }) = self.settings().zxids.wrote(before, zxid) {
            error!(
                epoch = self.epoch().0,
                seen = %seen,
                now = %now,
                advice = "stop every process, raise token_generation, and start them again",
                "the servers have gone back to an earlier transaction; nothing is granted any more"
            );
        }
    }

    /// Records the time of a write, by the servers' clock.
    fn observe_server_time(&self, millis: i64) {
        self.server_clock().observe(millis, self.now());
    }

    /// The earliest present time of the servers, in milliseconds since 1970; `None` before the first write.
    pub(crate) fn server_time(&self) -> Option<i64> {
        self.server_clock().now(self.now())
    }
}
