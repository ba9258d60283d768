use lockkeeper_testserver::{Fault, When};

use super::{Ending, Scenario};
use crate::fixture::Fixture;
use crate::limit::within;
use crate::recipe::Recipe;

/// An acquire of a free lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acquire<R>(pub(crate) R);

/// The same, and its directory has to be made first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AcquireMakingDirectory<R>(pub(crate) R);

/// An acquire whose create lost its answer: its connection broke after the create was applied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AcquireRecovering<R>(pub(crate) R);

impl<R: Recipe> Scenario for Acquire<R> {
    type Recipe = R;

    fn recipe(self) -> R {
        self.0
    }

    async fn set(self, fixture: &Fixture<R>) -> Result<(), String> {
        fixture.make_directory().await?;
        fixture.actor_connects().await
    }

    async fn act(self, fixture: &Fixture<R>) -> Result<Ending, String> {
        fixture.acquired(self.0.acquire(fixture.actor()?).await)
    }
}

impl<R: Recipe> Scenario for AcquireMakingDirectory<R> {
    type Recipe = R;

    fn recipe(self) -> R {
        self.0
    }

    async fn set(self, fixture: &Fixture<R>) -> Result<(), String> {
        fixture.actor_connects().await
    }

    async fn act(self, fixture: &Fixture<R>) -> Result<Ending, String> {
        fixture.acquired(self.0.acquire(fixture.actor()?).await)
    }
}

impl<R: Recipe> Scenario for AcquireRecovering<R> {
    type Recipe = R;

    const RECONNECTS: u64 = 1;

    fn recipe(self) -> R {
        self.0
    }

    async fn set(self, fixture: &Fixture<R>) -> Result<(), String> {
        fixture.make_directory().await?;
        fixture.actor_connects().await?;
        let server = &fixture.server_fixture.server;
        let creates = When::ops(R::CREATES.iter().copied());
        let lost = server.fault(creates.path("/locks/lock/**"), Fault::DropConnectionAfter);
        server.refuse_connections();
        fixture.begin_to_wait()?;
        within("the create", lost.hit()).await
    }

    async fn act(self, fixture: &Fixture<R>) -> Result<Ending, String> {
        fixture.server_fixture.server.accept_connections();
        fixture.waited().await
    }
}
