use super::{Ending, Scenario};
use crate::fixture::Fixture;
use crate::limit::within;
use crate::recipe::Recipe;
use crate::server_fixture::in_line;

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

    async fn set(self, fixture: &Fixture<R>) -> Result<(), String> {
        fixture.make_directory().await?;
        fixture.actor_connects().await?;
        fixture.actor_holds().await
    }

    async fn act(self, fixture: &Fixture<R>) -> Result<Ending, String> {
        fixture.release(&fixture.take_mine()?).await.map(Ending::new)
    }
}

impl<R: Recipe> Scenario for DropGuard<R> {
    type Recipe = R;

    fn recipe(self) -> R {
        self.0
    }

    async fn set(self, fixture: &Fixture<R>) -> Result<(), String> {
        fixture.make_directory().await?;
        fixture.actor_connects().await?;
        fixture.actor_holds().await
    }

    async fn act(self, fixture: &Fixture<R>) -> Result<Ending, String> {
        drop(fixture.take_mine()?.take());
        within(
            "the node gone",
            fixture.server_fixture.server.wait_until(|machine| in_line(machine).is_empty()),
        )
        .await?;
        Ok(Ending::new("gone"))
    }
}
