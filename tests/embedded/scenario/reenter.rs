use lockkeeper::{Owner, ReentrantMutex};

use super::{Ending, Scenario};
use crate::recipe::{Granted, Reentrant};
use crate::stage::{Stage, say};
use crate::world::LOCK;

/// First hold, nested hold, nested release, last release.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reenter;

impl Scenario for Reenter {
    type Recipe = Reentrant;

    fn recipe(self) -> Reentrant {
        Reentrant
    }

    async fn set(self, stage: &Stage<Reentrant>) -> Result<(), String> {
        stage.make_directory().await?;
        stage.actor_connects().await
    }

    async fn act(self, stage: &Stage<Reentrant>) -> Result<Ending, String> {
        let mutex = ReentrantMutex::new(&stage.actor()?, LOCK).map_err(say)?;
        let owner = Owner::new("one");
        let outer = match mutex.acquire_owned(&owner).await {
            Ok(outer) => outer,
            Err(error) => return stage.acquired(Err(error)),
        };
        let token = outer.fencing_token();
        let nested = mutex.acquire_owned(&owner).await;
        let outer = stage.world.court.enter("the actor", Granted::from(outer));
        match nested {
            Ok(nested) => {
                if (nested.fencing_token(), mutex.hold_count(&owner)) != (token, 2) {
                    return Err("a nested hold is not the first one's".to_owned());
                }
                // Lost or not, it goes nowhere over the network.
                let _ = nested.release().await;
            }
            Err(error) if error.is_lost() => {}
            Err(error) => return Err(format!("a nested acquire: {error}")),
        }
        let said = stage.release(&outer).await?;
        match mutex.hold_count(&owner) {
            0 => Ok(Ending::new(said)),
            count => Err(format!("{count} holds after the last release")),
        }
    }
}
