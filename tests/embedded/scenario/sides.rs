//! From one side of a read/write lock to the other.

use lockkeeper::{Error, Owner, RwLock, UpgradeError};
use lockkeeper_testserver::Op;

use super::{Ending, Scenario};
use crate::mishap::Mishap;
use crate::recipe::{Granted, Writing};
use crate::site::Site;
use crate::stage::{Stage, say};
use crate::world::LOCK;

/// A write that is turned into a read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Downgrade;

/// A read under a write, and then without it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadUnderWrite;

/// A sole reader that tries to write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Upgrade;

async fn set(stage: &Stage<Writing>) -> Result<(), String> {
    stage.make_directory().await?;
    stage.actor_connects().await
}

/// What is said of a step that failed, where it may.
async fn failed(stage: &Stage<Writing>, error: Error) -> Result<Ending, String> {
    match error {
        Error::Refused { refusal, .. } if stage.mishap.is_some_and(Mishap::refuses) => {
            Ok(Ending::new(format!("refused: {refusal:?}")))
        }
        Error::Lost(lost) if !stage.was_undisturbed().await => {
            Ok(Ending::new(format!("lost: {}", lost.reason)))
        }
        error => Err(format!("{error} ({error:?})")),
    }
}

impl Scenario for Downgrade {
    type Recipe = Writing;

    fn recipe(self) -> Writing {
        Writing
    }

    async fn set(self, stage: &Stage<Writing>) -> Result<(), String> {
        set(stage).await
    }

    async fn act(self, stage: &Stage<Writing>) -> Result<Ending, String> {
        let lock = RwLock::new(&stage.actor()?, LOCK).map_err(say)?;
        let write = match lock.write().await {
            Ok(write) => write,
            Err(error) => return stage.acquired(Err(error)),
        };
        let token = write.fencing_token();
        match write.downgrade().await {
            Ok(read) if read.fencing_token() != token => Err("a downgraded reader's token is new".to_owned()),
            Ok(read) => {
                Ok(Ending::holding("downgraded", stage.world.court.enter("the actor", Granted::from(read))))
            }
            Err(error) => failed(stage, error).await,
        }
    }

    /// What goes before is an acquire like any other.
    fn is_tried(self, site: &Site) -> bool {
        site.is(Op::Multi) && !site.is_by_clock()
    }
}

impl Scenario for ReadUnderWrite {
    type Recipe = Writing;

    fn recipe(self) -> Writing {
        Writing
    }

    async fn set(self, stage: &Stage<Writing>) -> Result<(), String> {
        set(stage).await
    }

    async fn act(self, stage: &Stage<Writing>) -> Result<Ending, String> {
        let lock = RwLock::new(&stage.actor()?, LOCK).map_err(say)?.for_owner(&Owner::new("one"));
        let write = match lock.write().await {
            Ok(write) => write,
            Err(error) => return stage.acquired(Err(error)),
        };
        let read = match lock.read().await {
            Ok(read) => read,
            Err(error) => return failed(stage, error).await,
        };
        // Lost or not, the other one tells.
        let _ = write.release().await;
        Ok(Ending::holding("reads on", stage.world.court.enter("the actor", Granted::from(read))))
    }

    fn is_tried(self, site: &Site) -> bool {
        (site.is(Op::Multi) && !site.is_by_clock()) || site.is(Op::Delete)
    }
}

impl Scenario for Upgrade {
    type Recipe = Writing;

    fn recipe(self) -> Writing {
        Writing
    }

    async fn set(self, stage: &Stage<Writing>) -> Result<(), String> {
        set(stage).await
    }

    async fn act(self, stage: &Stage<Writing>) -> Result<Ending, String> {
        let lock = RwLock::new(&stage.actor()?, LOCK).map_err(say)?;
        let read = match lock.read().await {
            Ok(read) => read,
            Err(error) => return stage.acquired(Err(error)),
        };
        let court = &stage.world.court;
        match read.try_upgrade().await {
            Ok(write) => Ok(Ending::holding("upgraded", court.enter("the actor", Granted::from(write)))),
            Err(UpgradeError::NotAlone { guard }) => {
                if stage.mishap.is_none() {
                    return Err("a sole reader was told that it is not".to_owned());
                }
                Ok(Ending::holding("not alone", court.enter("the actor", Granted::from(guard))))
            }
            Err(UpgradeError::Failed { guard, error }) if error.is_timeout() => {
                Ok(Ending::holding("timeout", court.enter("the actor", Granted::from(guard))))
            }
            Err(UpgradeError::Failed { error, .. }) => failed(stage, error).await,
        }
    }
}
