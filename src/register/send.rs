//! One attempt: its transaction, and what follows from the answer.

use super::attempt::Attempt;
use super::batch::Batch;
use super::decide::{AttemptVerdict, Basis, Content};
use super::doubts::Doubts;
use super::requests::StepFailure;
use super::worker::{AttemptStep, Worker};
use super::writer::WriterNode;
use crate::config::limits;
use crate::error::{Operation, Refusal};
use crate::session::Session;
use crate::time::deadline::Deadline;
use crate::time::fractions;
use crate::wire::{MultiError, Stat, WireError, WriteResult};
use crate::znode::zxid::Zxid;

impl Worker {
    /// Sends an attempt to write `data` to the node as it is in `basis`.
    pub(super) async fn send(
        &mut self,
        session: &Session,
        batch: &mut Batch,
        doubts: &mut Doubts,
        basis: Basis,
        data: Vec<u8>,
        deadline: Deadline,
    ) -> Result<AttemptStep, StepFailure> {
        self.memory.attempts += 1;
        let (number, path) = (self.memory.attempts, self.full().clone());
        let Some(writer) = &self.memory.writer else { return Ok(AttemptStep::Again) };
        let attempt = Attempt::new(path.as_str(), &basis, data.clone(), writer, number);
        limits::check(attempt.bytes()).map_err(|error| StepFailure::Error(error.into()))?;
        let sent = session.now();
        let mut commit = session.send_multi(&attempt.operations);
        let reads_behind = self.memory.contention.reads_behind();
        let next = reads_behind.then(|| session.read(|wire| wire.data(path.as_str())));
        let answer = session.await_reply(&mut commit, deadline).await;
        self.memory.contention.took(session.now().since(sent));
        match answer {
            Ok(Ok(results)) => Ok(AttemptStep::Done(self.applied(&basis, data, &results))),
            Ok(Err(MultiError::Operation { index, refusal })) => {
                let verdict = AttemptVerdict::of(Attempt::part(index), refusal);
                if let (AttemptVerdict::Stale, Some(stale), false) =
                    (verdict, &basis, doubts.may_have_changed_the_node())
                {
                    doubts.refute(stale);
                }
                let next = match next {
                    Some(mut next) => session.await_reply(&mut next, deadline).await.ok(),
                    None => None,
                };
                self.refused(session, batch, doubts, (verdict, basis.is_none()), next, deadline).await
            }
            Ok(Err(MultiError::Request(error))) | Err(error) => {
                let is_refused = matches!(error, WireError::Refused(_));
                if let (false, Some(writer)) = (is_refused, &self.memory.writer) {
                    doubts.add(number, writer.path(), &basis);
                }
                // The next attempt of the same session is made from the same state, and finds out.
                self.memory.basis = Some(basis);
                self.retry(session, Operation::Commit, &error, deadline).await.map_err(StepFailure::Error)
            }
        }
    }

    /// Records the node that an attempt wrote. Returns the zxid of the write.
    fn applied(&mut self, basis: &Basis, data: Vec<u8>, results: &[WriteResult]) -> Zxid {
        self.advance_writer();
        self.memory.contention.applied();
        // A node that was created is read behind the create of a writer node below it.
        self.memory.basis = Attempt::written(results).map(|stat| Some(Content::new(data, stat)));
        // Without a zxid it is not the answer to this request.
        Attempt::zxid(results).unwrap_or_else(|| basis.as_ref().map_or(Zxid::ZERO, |content| content.mzxid))
    }

    pub(super) fn advance_writer(&mut self) {
        let can_go_on = self.memory.writer.as_mut().is_some_and(WriterNode::advance);
        if !can_go_on {
            self.memory.writer = None;
        }
    }

    async fn refused(
        &mut self,
        session: &Session,
        batch: &mut Batch,
        doubts: &mut Doubts,
        (verdict, is_create): (AttemptVerdict, bool),
        next: Option<(Vec<u8>, Stat)>,
        deadline: Deadline,
    ) -> Result<AttemptStep, StepFailure> {
        match verdict {
            AttemptVerdict::WriterMoved | AttemptVerdict::Stale if is_create => {
                // If the node exists, it may be deleted again, and then an earlier attempt creates it. The
                // writer node tells what has moved it, so it is not deleted before.
                let applied = self.fence_creation(session, batch, doubts, deadline).await?;
                self.memory.writer = None;
                return Ok(applied.map_or(AttemptStep::Again, AttemptStep::Done));
            }
            AttemptVerdict::WriterMoved => return self.find_or_leave(session, batch, doubts, deadline).await,
            AttemptVerdict::WriterMissing => self.memory.writer = None,
            AttemptVerdict::Stale => {
                if doubts.may_have_changed_the_node() {
                    let cause = "the session ended, and the node was changed meanwhile";
                    return Err(StepFailure::Error(self.unknown(cause)));
                }
                self.memory.contention.refused();
                self.memory.basis = match next {
                    Some((data, stat)) => Some(Some(Content::new(data, &stat))),
                    None => self.read_after_pause(session, deadline).await?,
                };
            }
            AttemptVerdict::Refused(refusal) => {
                return Err(StepFailure::Wire(Operation::Commit, WireError::Refused(refusal)));
            }
        }
        Ok(AttemptStep::Again)
    }

    /// Reads the node for the next attempt. The condition of that attempt shows whether the read was current.
    /// Under contention it pauses first, and leaves the node to other clients.
    async fn read_after_pause(
        &self,
        session: &Session,
        deadline: Deadline,
    ) -> Result<Option<Basis>, StepFailure> {
        let (_, drawn) = session.settings().environment.unique().as_u64_pair();
        // The low half of a random UUID has no fixed bits.
        let drawn = u32::try_from(drawn & u64::from(u32::MAX)).unwrap_or_default();
        let pause = self.memory.contention.pause(drawn).min(fractions::retry_pause(session.timeout()));
        if !pause.is_zero() {
            session.pause(pause, deadline).await;
        }
        let mut read = session.read(|wire| wire.data(self.full().as_str()));
        match session.await_reply(&mut read, deadline).await {
            Ok((data, stat)) => Ok(Some(Some(Content::new(data, &stat)))),
            Err(WireError::Refused(Refusal::NoNode)) => Ok(None),
            Err(error) => Err(StepFailure::Wire(Operation::Read, error)),
        }
    }

    /// The writer node was written, by one of our attempts or by another client. Then the writer node
    /// proves nothing, and a new one is made.
    pub(super) async fn find_or_leave(
        &mut self,
        session: &Session,
        batch: &mut Batch,
        doubts: &Doubts,
        deadline: Deadline,
    ) -> Result<AttemptStep, StepFailure> {
        if let Some(zxid) = self.find_applied(session, batch, doubts, deadline).await? {
            self.advance_writer();
            return Ok(AttemptStep::Done(zxid));
        }
        self.memory.writer = None;
        Ok(AttemptStep::Again)
    }
}
