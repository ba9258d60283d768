//! The task that applies the changes of a register, while there are any.

use std::sync::Arc;

use super::batch::Batch;
use super::decide::{Basis, Content};
use super::doubts::{Doubts, Finding};
use super::memory::{Memory, RegisterInner};
use super::requests::{StepFailure, create_writer, read_node};
use super::writer::{WriterNode, attempt_number};
use crate::error::{Error, Operation, Phase};
use crate::session::{ParentLifetime, Session, Stop, make_directory};
use crate::time::deadline::Deadline;
use crate::wire::WireError;
use crate::znode::path::ZnodePath;
use crate::znode::zxid::Zxid;

/// Starts the task. `memory` is proof that none runs.
pub(super) fn start(inner: &Arc<RegisterInner>, memory: Memory) {
    inner.manager.spawn(Worker::new(inner, memory).run());
}

/// Dropped at any point, it leaves a register that can be used again.
pub(super) struct Worker {
    inner: Arc<RegisterInner>,
    pub(super) memory: Memory,
    /// The memory was given back: another task may have it.
    has_ended: bool,
}

/// How an attempt ended.
pub(super) enum AttemptStep {
    /// Try again.
    Again,
    /// The changes took effect at this zxid.
    Done(Zxid),
}

impl Worker {
    pub(super) fn new(inner: &Arc<RegisterInner>, memory: Memory) -> Self {
        Self { inner: Arc::clone(inner), memory, has_ended: false }
    }

    async fn run(mut self) {
        while let Some(mut batch) = self.next_batch() {
            let mut doubts = Doubts::default();
            let result = loop {
                let deadline = batch.deadline();
                let result = self.apply(&mut batch, &mut doubts, deadline).await;
                let Err(error) = &result else { break result };
                if !batch.is_read() {
                    // What becomes of the changes of other calls does not concern a read.
                    self.inner.state.lock().queue.put_back(batch.remove_reads());
                }
                if !deadline.has_passed() || !batch.end_expired(error, &doubts) {
                    break result;
                }
            };
            if !doubts.is_empty() && result.is_err() {
                // Its attempts may be applied as long as the writer node exists, and may change its version.
                self.memory.writer = None;
                self.memory.basis = None;
            }
            if self.memory.writer.as_ref().is_some_and(WriterNode::is_for_creates) {
                // It is of no use to a node that exists, and others see it.
                self.memory.writer = None;
            }
            batch.end(&result);
        }
    }

    /// The next changes. If there are none, the memory is given back in the same step.
    pub(super) fn next_batch(&mut self) -> Option<Batch> {
        let mut state = self.inner.state.lock();
        let batch = state.queue.take(self.inner.combines);
        if batch.is_none() {
            state.memory = Some(std::mem::take(&mut self.memory));
            self.has_ended = true;
        }
        batch
    }

    /// Applies the changes. An error leaves open whether they are applied if there are doubts, and only then.
    async fn apply(
        &mut self,
        batch: &mut Batch,
        doubts: &mut Doubts,
        deadline: Deadline,
    ) -> Result<Zxid, Error> {
        loop {
            match self.step(batch, doubts, deadline).await {
                Ok(AttemptStep::Done(zxid)) => return Ok(zxid),
                Ok(AttemptStep::Again) if deadline.has_passed() => return Err(self.timeout(doubts, deadline)),
                Ok(AttemptStep::Again) => {}
                Err(error) if doubts.is_empty() || error.outcome_unknown() => return Err(error),
                Err(error) => return Err(self.unknown(&error.to_string())),
            }
        }
    }

    async fn step(
        &mut self,
        batch: &mut Batch,
        doubts: &mut Doubts,
        deadline: Deadline,
    ) -> Result<AttemptStep, Error> {
        let session = self.inner.manager.session(deadline, self.inner.full.as_str()).await?;
        let entered = self.enter(&session, batch, doubts, deadline).await;
        let stepped = match entered {
            Ok(None) => self.attempt(&session, batch, doubts, deadline).await,
            Ok(Some(zxid)) => return Ok(AttemptStep::Done(zxid)),
            Err(failed) => Err(failed),
        };
        match stepped {
            Ok(step) => Ok(step),
            Err(StepFailure::Error(error)) => Err(error),
            Err(StepFailure::Wire(operation, error)) => {
                self.memory.basis = None;
                self.retry(&session, operation, &error, deadline).await
            }
        }
    }

    /// Decides whether a request is sent again, and pauses before that.
    pub(super) async fn retry(
        &self,
        session: &Session,
        operation: Operation,
        error: &WireError,
        deadline: Deadline,
    ) -> Result<AttemptStep, Error> {
        let retried = session.retry_after(error, operation, self.inner.full.as_str(), deadline).await;
        match retried.or_else(Stop::or_next_session) {
            // The caller knows whether an attempt is in doubt when the deadline passes.
            Ok(()) | Err(Error::Timeout { .. }) => Ok(AttemptStep::Again),
            Err(error) => Err(error),
        }
    }

    /// Prepares the writer node of this session. If there are doubts from another writer node, finds out what
    /// has become of them. Returns the zxid of the attempt that was applied, if one was.
    async fn enter(
        &mut self,
        session: &Session,
        batch: &mut Batch,
        doubts: &mut Doubts,
        deadline: Deadline,
    ) -> Result<Option<Zxid>, StepFailure> {
        if self.memory.writer.as_ref().is_some_and(|writer| !writer.is_of(session)) {
            // What another session has read may be newer than what this one reads.
            self.memory.writer = None;
            self.memory.basis = None;
        }
        if self.memory.writer.is_some() || !doubts.is_writer_used() {
            return Ok(None);
        }
        if doubts.has_creates() {
            return self.fence_creation(session, batch, doubts, deadline).await;
        }
        if let Some(zxid) = self.find_applied(session, batch, doubts, deadline).await? {
            return Ok(Some(zxid));
        }
        doubts.leave_writer();
        Ok(None)
    }

    /// Looks for the attempt that the last writer node names. If there is one, decides the changes anew from
    /// its state.
    pub(super) async fn find_applied(
        &self,
        session: &Session,
        batch: &mut Batch,
        doubts: &Doubts,
        deadline: Deadline,
    ) -> Result<Option<Zxid>, StepFailure> {
        let Some(writer) = doubts.writer() else { return Ok(None) };
        let Some((data, stat)) = read_node(session, writer, deadline).await? else { return Ok(None) };
        let Some(basis) = attempt_number(&data).and_then(|number| doubts.basis_of(number)) else {
            return Ok(None);
        };
        batch.decide(basis);
        Ok(Some(stat.mzxid))
    }

    /// Nothing is to be written to the node as it was just read. So it is not as the attempts need it, and
    /// none of them will be applied any more. Looks whether one was.
    async fn find_applied_before(
        &mut self,
        session: &Session,
        batch: &mut Batch,
        doubts: &Doubts,
        deadline: Deadline,
    ) -> Result<Option<Zxid>, StepFailure> {
        let Some(writer) = doubts.writer().filter(|_| doubts.is_writer_used()) else { return Ok(None) };
        if let Some(zxid) = self.find_applied(session, batch, doubts, deadline).await? {
            self.advance_writer();
            return Ok(Some(zxid));
        }
        if read_node(session, writer, deadline).await?.is_none() {
            return Err(StepFailure::Error(
                self.unknown("its writer node was deleted, and the node was changed since"),
            ));
        }
        Ok(None)
    }

    /// Reads the node as it is now.
    async fn read(&self, session: &Session, deadline: Deadline) -> Result<Basis, StepFailure> {
        let node = read_node(session, self.inner.full.as_str(), deadline).await?;
        Ok(node.map(|(data, stat)| Content::new(data, &stat)))
    }

    /// One attempt.
    async fn attempt(
        &mut self,
        session: &Session,
        batch: &mut Batch,
        doubts: &mut Doubts,
        deadline: Deadline,
    ) -> Result<AttemptStep, StepFailure> {
        let known = self.memory.basis.take().filter(|_| !batch.is_read());
        // Attempts to create the node go on until one is answered.
        let known = if doubts.has_creates() { Some(None) } else { known };
        let is_current = known.is_none();
        let basis = match known {
            Some(basis) => basis,
            None if batch.is_read() || self.has_writer() => self.read(session, deadline).await?,
            None => self.begin_writing(session, deadline).await?,
        };
        if doubts.judge(&basis) == Finding::Unknown {
            if let Some(zxid) = self.find_applied(session, batch, doubts, deadline).await? {
                return Ok(AttemptStep::Done(zxid));
            }
            return Err(StepFailure::Error(
                self.unknown("its writer node is gone, and the node was changed since"),
            ));
        }
        let Some(data) = batch.decide(&basis) else {
            if let Some(zxid) = self.fence_creation(session, batch, doubts, deadline).await? {
                return Ok(AttemptStep::Done(zxid));
            }
            if !is_current {
                // What the last change left may have been changed since.
                return Ok(AttemptStep::Again);
            }
            if let Some(zxid) = self.find_applied_before(session, batch, doubts, deadline).await? {
                return Ok(AttemptStep::Done(zxid));
            }
            if !doubts.is_empty() {
                self.memory.writer = None;
            }
            let zxid = basis.as_ref().map_or(Zxid::ZERO, |content| content.mzxid);
            self.memory.basis = Some(basis);
            return Ok(AttemptStep::Done(zxid));
        };
        match (&basis, &self.memory.writer) {
            (Some(_), Some(writer)) if writer.is_for_writes() => {}
            (None, Some(writer)) if writer.is_for_creates() => {}
            (None, None) => {
                self.begin_creating(session, deadline).await?;
                self.memory.basis = Some(basis);
                return Ok(AttemptStep::Again);
            }
            (None, Some(_)) => {
                // The node was deleted, and the writer node below it as well.
                self.memory.writer = None;
                self.memory.basis = Some(basis);
                return Ok(AttemptStep::Again);
            }
            // Only a read behind the create of the writer node shows the node that the writer node is a child
            // of.
            (Some(_), _) => {
                self.memory.writer = None;
                return Ok(AttemptStep::Again);
            }
        }
        self.send(session, batch, doubts, basis, data, deadline).await
    }

    /// Whether the writer node below the node exists, as far as is known.
    fn has_writer(&self) -> bool {
        self.memory.writer.as_ref().is_some_and(WriterNode::is_for_writes)
    }

    /// Creates the writer node below the node, and reads the node behind that.
    async fn begin_writing(&mut self, session: &Session, deadline: Deadline) -> Result<Basis, StepFailure> {
        let path = &self.inner.full;
        let writer = self.memory.writer.insert(WriterNode::below(session, path));
        create_writer(session, path.as_str(), writer, deadline).await
    }

    pub(super) async fn make_parent(
        &mut self,
        session: &Session,
        deadline: Deadline,
    ) -> Result<(), StepFailure> {
        let Some(parent) = self.inner.full.parent() else { return Ok(()) };
        if std::mem::replace(&mut self.memory.has_made_parent, true) {
            // It was missing again: another client deletes it.
            session.backoff(deadline).await;
        }
        let made = make_directory(session, &parent, ParentLifetime::ForEver, deadline).await;
        made.map_err(|error| StepFailure::Wire(Operation::Create, error))
    }

    fn timeout(&self, doubts: &Doubts, deadline: Deadline) -> Error {
        if doubts.is_empty() {
            let (path, waited) = (self.inner.full.as_str().into(), deadline.waited());
            return Error::Timeout { phase: Phase::Connecting, path, waited };
        }
        self.unknown(&format!("no answer within {:.1?}", deadline.waited()))
    }

    /// The path of the node on the server.
    pub(super) fn full(&self) -> &ZnodePath {
        &self.inner.full
    }

    pub(super) fn unknown(&self, cause: &str) -> Error {
        let path = self.inner.full.as_str().into();
        Error::Unknown { operation: Operation::Write, path, cause: cause.to_owned() }
    }
}

impl Drop for Worker {
    /// The runtime is shut down.
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        let mut state = self.inner.state.lock();
        state.memory = Some(Memory { attempts: self.memory.attempts, ..Memory::default() });
        let left = state.queue.drain();
        drop(state);
        drop(left);
    }
}
