//! Leave to start.

use std::time::Duration;

use lockkeeper::{Error, RateLimiter};

use super::{Ending, Scenario};
use crate::mishap::Mishap;
use crate::recipe::Plain;
use crate::stage::{Stage, say};
use crate::world::LOCK;

/// An admission. What stands behind the actor is a mutex beside it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admit;

/// More than one, so that an admission whose answer is lost does not fill the window.
const STARTS: usize = 8;

impl Scenario for Admit {
    type Recipe = Plain;

    fn recipe(self) -> Plain {
        Plain
    }

    async fn set(self, stage: &Stage<Plain>) -> Result<(), String> {
        stage.make_directory().await?;
        stage.actor_connects().await
    }

    async fn act(self, stage: &Stage<Plain>) -> Result<Ending, String> {
        let limiter =
            RateLimiter::new(&stage.actor()?, LOCK, STARTS, Duration::from_secs(60)).map_err(say)?;
        match limiter.admit().await {
            Ok(admission) if admission.is_fresh() => Ok(Ending::new("admitted")),
            Ok(_) => Ok(Ending::new("admitted too late, and said so")),
            Err(Error::Refused { refusal, .. }) if stage.mishap.is_some_and(Mishap::refuses) => {
                Ok(Ending::new(format!("refused: {refusal:?}")))
            }
            Err(error) => Err(format!("{error} ({error:?})")),
        }
    }

    /// What is written down is what was committed: the try that was answered, and for each break of the link one whose
    /// answer was lost; a mishap alone loses one.
    fn verdict(self, stage: &Stage<Plain>) -> Result<(), String> {
        let starts = format!("{LOCK}/starts");
        let written = stage
            .world
            .server
            .inspect(|machine| machine.tree().node(&starts).map_or(0, |node| node.children.len()));
        let breaks = stage.breaks().max(1);
        if u64::try_from(written).is_ok_and(|written| written <= 1 + breaks) {
            return Ok(());
        }
        Err(format!("{written} starts were used up, though the link broke {breaks} times at most"))
    }
}
