use lockkeeper::{Owner, ReentrantMutex};
use lockkeeper_test_recipes::AnyAdapter;
use lockkeeper_test_recipes::reentrant_mutex::Reentrant;

use super::{Ending, Scenario};
use crate::fixture::{Fixture, say};
use crate::server_fixture::LOCK;

/// First hold, nested hold, nested release, last release.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reenter;

impl Scenario for Reenter {
    fn adapter(self) -> AnyAdapter {
        &Reentrant
    }

    async fn set(self, fixture: &Fixture) -> Result<(), String> {
        fixture.make_directory().await?;
        fixture.actor_connects().await
    }

    async fn act(self, fixture: &Fixture) -> Result<Ending, String> {
        let mutex = ReentrantMutex::new(&fixture.actor()?, LOCK).map_err(say)?;
        let owner = Owner::new("one");
        let outer = match mutex.acquire(&owner).await {
            Ok(outer) => outer,
            Err(error) => return fixture.acquired(Err(error)),
        };
        let token = outer.fencing_token();
        let nested = mutex.acquire(&owner).await;
        let outer = fixture.server_fixture.oracle.enter("the actor", Box::new(outer));
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
        let said = fixture.release(&outer).await?;
        match mutex.hold_count(&owner) {
            0 => Ok(Ending::new(said)),
            count => Err(format!("{count} holds after the last release")),
        }
    }
}
