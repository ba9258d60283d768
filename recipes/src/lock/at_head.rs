//! The head of a queue: a contender waits for its turn, and then takes something, or waits until it can.

use lockkeeper_core::{ConnectionManager, Deadline, Error, Hold, HoldExt, LockQueue, Phase, ZnodePath};

use super::tries;

/// A request of a recipe that the head of its queue decides.
pub(crate) trait AtHead: Sync {
    /// What the head takes.
    type Taken;

    fn manager(&self) -> &ConnectionManager;

    /// The path of the recipe, below the manager's chroot.
    fn path(&self) -> &ZnodePath;

    /// The queue to wait in until `deadline`.
    fn queue(&self, deadline: Deadline) -> LockQueue;

    /// Takes what the request asks for, under the hold of the queue in `slot`. If the hold is still good for
    /// another call, it stays in the slot.
    fn decide(
        &self,
        slot: &mut Option<Hold>,
        limit: HeadLimit,
    ) -> impl Future<Output = Result<Self::Taken, NotTaken>> + Send;

    /// The error of a call whose deadline passed in this phase.
    fn timeout_error(&self, phase: Phase, deadline: Deadline) -> Error {
        let path = self.manager().whole_path(self.path());
        Error::Timeout { phase, path, waited: deadline.waited() }
    }
}

/// The limit of a head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadLimit {
    /// The end of the call.
    pub(crate) deadline: Deadline,
    /// Whether the head waits until it can take something. Otherwise it waits for answers alone.
    pub(crate) waits: bool,
}

impl HeadLimit {
    /// To wait until `deadline`.
    pub(crate) fn wait(deadline: Deadline) -> Self {
        Self { deadline, waits: true }
    }

    /// To decide now: answers have the manager's operation timeout.
    pub(crate) fn now(manager: &ConnectionManager) -> Self {
        Self { deadline: Deadline::after(manager.operation_timeout()), waits: false }
    }
}

/// The reason why the head took nothing.
#[derive(Debug)]
pub(crate) enum NotTaken {
    /// The hold of the queue was lost, or what the head has read may be stale: queue again, at the end.
    Restart,
    /// There is nothing to take before the deadline. A call with a longer one would wait for this.
    NotNow(Phase),
    /// The call fails.
    Failed(Error),
}

impl From<Error> for NotTaken {
    fn from(error: Error) -> Self {
        match error.is_lost() {
            true => Self::Restart,
            false => Self::Failed(error),
        }
    }
}

impl From<Phase> for NotTaken {
    fn from(phase: Phase) -> Self {
        Self::NotNow(phase)
    }
}

/// Waits until `deadline`, or only tries if the deadline leaves no time to wait.
pub(crate) async fn acquire<A: AtHead>(request: &A, deadline: Deadline) -> Result<A::Taken, Error> {
    let taken = match deadline.is_immediate() {
        true => try_acquire(request).await?,
        false => run(request, HeadLimit::wait(deadline)).await?,
    };
    taken.map_err(|phase| request.timeout_error(phase, deadline))
}

/// Takes what the request asks for, if that is possible now. Otherwise says what a wait would wait for.
pub(crate) async fn try_acquire<A: AtHead>(request: &A) -> Result<Result<A::Taken, Phase>, Error> {
    run(request, HeadLimit::now(request.manager())).await
}

/// As [`try_acquire`], where tries of this process are no contenders of each other: one follows the other.
pub(crate) async fn try_in_turn<A: AtHead>(request: &A) -> Result<Result<A::Taken, Phase>, Error> {
    let limit = HeadLimit::now(request.manager());
    let turn = tries::turn_of(request.manager(), request.path());
    let _turn = tokio::select! {
        biased;
        turn = turn.lock() => turn,
        () = request.manager().closing() => return Err(Error::Closed),
        () = limit.deadline.passed() => return Err(request.timeout_error(Phase::Answer, limit.deadline)),
    };
    run(request, limit).await
}

async fn run<A: AtHead>(request: &A, limit: HeadLimit) -> Result<Result<A::Taken, Phase>, Error> {
    let in_queue = if limit.waits { limit.deadline } else { Deadline::immediate() };
    loop {
        let hold = match request.queue(in_queue).acquire(in_queue).await {
            Ok(hold) => hold,
            Err(Error::Timeout { phase: phase @ Phase::Queued { .. }, .. }) if !limit.waits => {
                return Ok(Err(phase));
            }
            Err(error) => return Err(error),
        };
        match decide(request, &mut Some(hold), limit).await {
            Ok(taken) => return Ok(Ok(taken)),
            // A try has no time for another turn.
            Err(NotTaken::Restart) if !limit.waits && limit.deadline.has_passed() => {
                return Err(request.timeout_error(Phase::Answer, limit.deadline));
            }
            Err(NotTaken::Restart) => {}
            Err(NotTaken::NotNow(phase)) => return Ok(Err(phase)),
            Err(NotTaken::Failed(error)) => return Err(error),
        }
    }
}

/// Decides under the hold in `slot`, until the manager is shut down.
pub(crate) async fn decide<A: AtHead>(
    request: &A,
    slot: &mut Option<Hold>,
    limit: HeadLimit,
) -> Result<A::Taken, NotTaken> {
    // The call queues again after a loss of its turn.
    slot.iter().for_each(Hold::defer_loss_report);
    tokio::select! {
        biased;
        // Polled first at each step. A transaction in flight may be applied; the recipe says what follows.
        () = request.manager().closing() => Err(Error::Closed.into()),
        taken = request.decide(slot, limit) => taken,
    }
}
