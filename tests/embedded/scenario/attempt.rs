use super::{Ending, Scenario};
use crate::fixture::Fixture;
use crate::recipe::Recipe;

/// A try at a free lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TryFree<R>(pub(crate) R);

/// A try at a lock that somebody holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TryTaken<R>(pub(crate) R);

impl<R: Recipe> Scenario for TryFree<R> {
    type Recipe = R;

    fn recipe(self) -> R {
        self.0
    }

    async fn set(self, fixture: &Fixture<R>) -> Result<(), String> {
        fixture.make_directory().await?;
        fixture.actor_connects().await
    }

    async fn act(self, fixture: &Fixture<R>) -> Result<Ending, String> {
        fixture.tried(self.0.try_acquire(fixture.actor()?).await).await
    }
}

impl<R: Recipe> Scenario for TryTaken<R> {
    type Recipe = R;

    fn recipe(self) -> R {
        self.0
    }

    async fn set(self, fixture: &Fixture<R>) -> Result<(), String> {
        fixture.make_directory().await?;
        fixture.rival_holds().await?;
        fixture.actor_connects().await
    }

    async fn act(self, fixture: &Fixture<R>) -> Result<Ending, String> {
        let tried = fixture.tried(self.0.try_acquire(fixture.actor()?).await).await?;
        fixture.rival_releases().await?;
        Ok(tried)
    }
}
