use lockkeeper_test_recipes::AnyAdapter;

use super::{Ending, Scenario};
use crate::fixture::Fixture;
use crate::limit::within;
use crate::server_fixture::queue_nodes;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Release(pub(crate) AnyAdapter);

/// A guard is dropped, and its nodes are deleted in the background.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DropGuard(pub(crate) AnyAdapter);

impl Scenario for Release {
    fn adapter(self) -> AnyAdapter {
        self.0
    }

    async fn set(self, fixture: &Fixture) -> Result<(), String> {
        fixture.make_directory().await?;
        fixture.actor_connects().await?;
        fixture.actor_holds().await
    }

    async fn act(self, fixture: &Fixture) -> Result<Ending, String> {
        fixture.release(&fixture.take_mine()?).await.map(Ending::new)
    }
}

impl Scenario for DropGuard {
    fn adapter(self) -> AnyAdapter {
        self.0
    }

    async fn set(self, fixture: &Fixture) -> Result<(), String> {
        fixture.make_directory().await?;
        fixture.actor_connects().await?;
        fixture.actor_holds().await
    }

    async fn act(self, fixture: &Fixture) -> Result<Ending, String> {
        drop(fixture.take_mine()?.take());
        within(
            "the node gone",
            fixture.server_fixture.server.wait_until(|machine| queue_nodes(machine).is_empty()),
        )
        .await?;
        Ok(Ending::new("gone"))
    }
}
