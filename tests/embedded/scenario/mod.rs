//! What is done with a lock while something happens: one scenario for each way through each recipe.

mod acquire;
mod admit;
mod attempt;
mod commit;
mod connection;
mod hold;
mod reenter;
mod release;
mod sides;
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
pub(crate) use self::wait::{Wait, WaitBehindTwo, WaitOvertaken, WaitReconnecting, WaitTimesOut};
use crate::fixture::Fixture;
use crate::injection_point::InjectionPoint;
use crate::oracle::Hold;

/// One way through a recipe.
pub(crate) trait Scenario: Copy + Debug + Send + Sync + 'static {
    /// Whether somebody else is in line, so that nobody may be put in front of the actor's turn.
    const WAITS: bool = false;

    /// How often it reconnects by itself.
    const RECONNECTS: u64 = 0;

    /// What the actor takes. What excludes it is taken before and behind it.
    fn adapter(self) -> AnyAdapter;

    /// Sets the stage, up to the moment from which the mishap may strike.
    fn set(self, fixture: &Fixture) -> impl Future<Output = Result<(), String>> + Send;

    /// Does what the scenario is about. An error is a broken promise.
    fn act(self, fixture: &Fixture) -> impl Future<Output = Result<Ending, String>> + Send;

    /// Which requests come by the clock and are what it is about: it is recorded until there were two.
    const BY_CLOCK: Option<Op> = None;

    /// Which of the recorded sites are tried: by default all but those that come by the clock.
    fn is_tried(self, injection_point: &InjectionPoint) -> bool {
        match Self::BY_CLOCK {
            Some(op) => injection_point.is(op),
            None => !injection_point.is_by_clock(),
        }
    }

    /// What must hold besides, at the very end.
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
