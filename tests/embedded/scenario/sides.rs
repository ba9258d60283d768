//! From one side of a read/write lock to the other.

use lockkeeper::error::UpgradeError;
use lockkeeper::{Error, Owner, RwLock};
use lockkeeper_test_recipes::AnyAdapter;
use lockkeeper_test_recipes::rw_lock::{Sides, Writing};
use lockkeeper_testserver::Op;

use super::{Ending, Scenario};
use crate::fixture::{Fixture, say};
use crate::injected_fault::InjectedFault;
use crate::injection_point::InjectionPoint;
use crate::server_fixture::LOCK;

/// A write that is turned into a read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Downgrade;

/// A read under a write, and then without it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadUnderWrite;

/// A sole reader that tries to write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Upgrade;

async fn set(fixture: &Fixture) -> Result<(), String> {
    fixture.make_directory().await?;
    fixture.actor_connects().await
}

/// What is said of a step that failed, where it may.
async fn failed(fixture: &Fixture, error: Error) -> Result<Ending, String> {
    match error {
        Error::Refused { refusal, .. } if fixture.injected_fault.is_some_and(InjectedFault::refuses) => {
            Ok(Ending::new(format!("refused: {refusal:?}")))
        }
        Error::Lost(lost) if !fixture.was_undisturbed().await => {
            Ok(Ending::new(format!("lost: {}", lost.reason)))
        }
        error => Err(format!("{error} ({error:?})")),
    }
}

impl Scenario for Downgrade {
    fn adapter(self) -> AnyAdapter {
        &Writing
    }

    async fn set(self, fixture: &Fixture) -> Result<(), String> {
        set(fixture).await
    }

    async fn act(self, fixture: &Fixture) -> Result<Ending, String> {
        let lock = RwLock::new(&fixture.actor()?, LOCK).map_err(say)?;
        let write = match lock.write().await {
            Ok(write) => write,
            Err(error) => return fixture.acquired(Err(error)),
        };
        let token = write.fencing_token();
        match write.downgrade().await {
            Ok(read) if read.fencing_token() != token => Err("a downgraded reader's token is new".to_owned()),
            Ok(read) => Ok(Ending::holding(
                "downgraded",
                fixture.server_fixture.oracle.enter("the actor", Box::new(Sides::from(read))),
            )),
            Err(error) => failed(fixture, error).await,
        }
    }

    /// What goes before is an acquire like any other.
    fn is_tried(self, injection_point: &InjectionPoint) -> bool {
        injection_point.is(Op::Multi) && !injection_point.is_by_clock()
    }
}

impl Scenario for ReadUnderWrite {
    fn adapter(self) -> AnyAdapter {
        &Writing
    }

    async fn set(self, fixture: &Fixture) -> Result<(), String> {
        set(fixture).await
    }

    async fn act(self, fixture: &Fixture) -> Result<Ending, String> {
        let lock = RwLock::new(&fixture.actor()?, LOCK).map_err(say)?.for_owner(&Owner::new("one"));
        let write = match lock.write().await {
            Ok(write) => write,
            Err(error) => return fixture.acquired(Err(error)),
        };
        let read = match lock.read().await {
            Ok(read) => read,
            Err(error) => return failed(fixture, error).await,
        };
        // Lost or not, the other one tells.
        let _ = write.release().await;
        Ok(Ending::holding(
            "reads on",
            fixture.server_fixture.oracle.enter("the actor", Box::new(Sides::from(read))),
        ))
    }

    fn is_tried(self, injection_point: &InjectionPoint) -> bool {
        (injection_point.is(Op::Multi) && !injection_point.is_by_clock()) || injection_point.is(Op::Delete)
    }
}

impl Scenario for Upgrade {
    fn adapter(self) -> AnyAdapter {
        &Writing
    }

    async fn set(self, fixture: &Fixture) -> Result<(), String> {
        set(fixture).await
    }

    async fn act(self, fixture: &Fixture) -> Result<Ending, String> {
        let lock = RwLock::new(&fixture.actor()?, LOCK).map_err(say)?;
        let read = match lock.read().await {
            Ok(read) => read,
            Err(error) => return fixture.acquired(Err(error)),
        };
        let oracle = &fixture.server_fixture.oracle;
        match read.try_upgrade().await {
            Ok(write) => {
                Ok(Ending::holding("upgraded", oracle.enter("the actor", Box::new(Sides::from(write)))))
            }
            Err(UpgradeError::NotAlone { guard }) => {
                if fixture.injected_fault.is_none() {
                    return Err("for a sole reader the answer was that it is not the only one".to_owned());
                }
                Ok(Ending::holding("not alone", oracle.enter("the actor", Box::new(Sides::from(guard)))))
            }
            Err(UpgradeError::Failed { guard, error }) if error.is_timeout() => {
                Ok(Ending::holding("timeout", oracle.enter("the actor", Box::new(Sides::from(guard)))))
            }
            Err(UpgradeError::Failed { error, .. }) => failed(fixture, error).await,
        }
    }
}
