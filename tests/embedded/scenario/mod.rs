//! What the actor does with a lock while a fault is injected: one scenario for each operation.

mod acquire;
mod admit;
mod attempt;
mod commit;
mod connection;
mod hold;
mod reenter;
mod release;
mod sides;
mod slot;
mod wait;

use std::fmt::Debug;
use std::future::Future;

use lockkeeper_test_recipes::AnyAdapter;
use lockkeeper_testserver::Op;

pub(crate) use self::acquire::{Acquire, AcquireMakingDirectory, AcquireRecovering};
pub(crate) use self::admit::Admit;
pub(crate) use self::attempt::{TryFree, TryTaken};
pub(crate) use self::commit::Commit;
pub(crate) use self::connection::{Connect, Idle, Shutdown};
pub(crate) use self::hold::{HoldOn, HoldReconnecting};
pub(crate) use self::reenter::Reenter;
pub(crate) use self::release::{DropGuard, Release};
pub(crate) use self::sides::{Downgrade, ReadUnderWrite, Upgrade};
pub(crate) use self::slot::{DoSlot, Initialise};
pub(crate) use self::wait::{Wait, WaitBehindTwo, WaitOvertaken, WaitReconnecting, WaitTimesOut};
use crate::fixture::Fixture;
use crate::injection_point::InjectionPoint;
use crate::oracle::Hold;

/// One operation, of any recipe.
pub(crate) trait Scenario: Copy + Debug + Send + Sync + 'static {
    /// Whether another contender is in the queue, so that no contender may be added behind the actor at the
    /// fault.
    const WAITS: bool = false;

    /// How often it reconnects by itself.
    const RECONNECTS: u64 = 0;

    /// What the actor takes. What excludes it is taken before and behind it.
    fn adapter(self) -> AnyAdapter;

    /// Prepares everything up to the moment from which the fault may be injected.
    fn set(self, fixture: &Fixture) -> impl Future<Output = Result<(), String>> + Send;

    /// Does what the scenario is about. An error is a broken promise.
    fn act(self, fixture: &Fixture) -> impl Future<Output = Result<Ending, String>> + Send;

    /// The requests by the clock that the scenario is about: it is recorded until there were two.
    const BY_CLOCK: Option<Op> = None;

    /// Which of the recorded injection points are tried: by default all but those of requests by the clock.
    fn is_tried(self, injection_point: &InjectionPoint) -> bool {
        match Self::BY_CLOCK {
            Some(op) => injection_point.is(op),
            None => !injection_point.is_by_clock(),
        }
    }

    /// What else must hold at the end.
    fn verdict(self, _: &Fixture) -> Result<(), String> {
        Ok(())
    }
}

/// How a scenario ended.
pub(crate) struct Ending {
    /// In a few words, for the table.
    pub(crate) said: String,
    /// What is still held.
    pub(crate) hold: Option<Hold>,
}

impl Ending {
    pub(crate) fn new(said: impl Into<String>) -> Self {
        Self { said: said.into(), hold: None }
    }

    pub(crate) fn holding(said: impl Into<String>, hold: Hold) -> Self {
        Self { said: said.into(), hold: Some(hold) }
    }
}
