use lockkeeper_test_recipes::AnyAdapter;

use super::{Ending, Scenario};
use crate::fixture::Fixture;

/// A try at a free lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TryFree(pub(crate) AnyAdapter);

/// A try at a lock that the rival holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TryTaken(pub(crate) AnyAdapter);

impl Scenario for TryFree {
    fn adapter(self) -> AnyAdapter {
        self.0
    }

    async fn set(self, fixture: &Fixture) -> Result<(), String> {
        fixture.make_directory().await?;
        fixture.actor_connects().await
    }

    async fn act(self, fixture: &Fixture) -> Result<Ending, String> {
        fixture.tried(self.0.try_acquire(fixture.target()?).await).await
    }
}

impl Scenario for TryTaken {
    fn adapter(self) -> AnyAdapter {
        self.0
    }

    async fn set(self, fixture: &Fixture) -> Result<(), String> {
        fixture.make_directory().await?;
        fixture.rival_holds().await?;
        fixture.actor_connects().await
    }

    async fn act(self, fixture: &Fixture) -> Result<Ending, String> {
        let tried = fixture.tried(self.0.try_acquire(fixture.target()?).await).await?;
        fixture.rival_releases().await?;
        Ok(tried)
    }
}
