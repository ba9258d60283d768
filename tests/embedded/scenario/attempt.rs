use super::{Ending, Scenario};
use crate::recipe::Recipe;
use crate::stage::Stage;

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

    async fn set(self, stage: &Stage<R>) -> Result<(), String> {
        stage.make_directory().await?;
        stage.actor_connects().await
    }

    async fn act(self, stage: &Stage<R>) -> Result<Ending, String> {
        stage.tried(self.0.try_acquire(stage.actor()?).await).await
    }
}

impl<R: Recipe> Scenario for TryTaken<R> {
    type Recipe = R;

    fn recipe(self) -> R {
        self.0
    }

    async fn set(self, stage: &Stage<R>) -> Result<(), String> {
        stage.make_directory().await?;
        stage.rival_holds().await?;
        stage.actor_connects().await
    }

    async fn act(self, stage: &Stage<R>) -> Result<Ending, String> {
        let tried = stage.tried(self.0.try_acquire(stage.actor()?).await).await?;
        stage.rival_releases().await?;
        Ok(tried)
    }
}
