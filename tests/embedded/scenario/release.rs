use super::{Ending, Scenario};
use crate::limit::within;
use crate::recipe::Recipe;
use crate::stage::Stage;
use crate::world::in_line;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Release<R>(pub(crate) R);

/// A guard is dropped, and what it held is given back in the background.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DropGuard<R>(pub(crate) R);

impl<R: Recipe> Scenario for Release<R> {
    type Recipe = R;

    fn recipe(self) -> R {
        self.0
    }

    async fn set(self, stage: &Stage<R>) -> Result<(), String> {
        stage.make_directory().await?;
        stage.actor_connects().await?;
        stage.actor_holds().await
    }

    async fn act(self, stage: &Stage<R>) -> Result<Ending, String> {
        stage.release(&stage.take_mine()?).await.map(Ending::new)
    }
}

impl<R: Recipe> Scenario for DropGuard<R> {
    type Recipe = R;

    fn recipe(self) -> R {
        self.0
    }

    async fn set(self, stage: &Stage<R>) -> Result<(), String> {
        stage.make_directory().await?;
        stage.actor_connects().await?;
        stage.actor_holds().await
    }

    async fn act(self, stage: &Stage<R>) -> Result<Ending, String> {
        drop(stage.take_mine()?.take());
        within("the node gone", stage.world.server.wait_until(|machine| in_line(machine).is_empty())).await?;
        Ok(Ending::new("gone"))
    }
}
