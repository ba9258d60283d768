use lockkeeper_testserver::{Fault, When};

use super::{Ending, Scenario};
use crate::limit::within;
use crate::recipe::Recipe;
use crate::stage::Stage;

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

    async fn set(self, stage: &Stage<R>) -> Result<(), String> {
        stage.make_directory().await?;
        stage.actor_connects().await
    }

    async fn act(self, stage: &Stage<R>) -> Result<Ending, String> {
        stage.acquired(self.0.acquire(stage.actor()?).await)
    }
}

impl<R: Recipe> Scenario for AcquireMakingDirectory<R> {
    type Recipe = R;

    fn recipe(self) -> R {
        self.0
    }

    async fn set(self, stage: &Stage<R>) -> Result<(), String> {
        stage.actor_connects().await
    }

    async fn act(self, stage: &Stage<R>) -> Result<Ending, String> {
        stage.acquired(self.0.acquire(stage.actor()?).await)
    }
}

impl<R: Recipe> Scenario for AcquireRecovering<R> {
    type Recipe = R;

    const RECONNECTS: u64 = 1;

    fn recipe(self) -> R {
        self.0
    }

    async fn set(self, stage: &Stage<R>) -> Result<(), String> {
        stage.make_directory().await?;
        stage.actor_connects().await?;
        let server = &stage.world.server;
        let creates = When::ops(R::CREATES.iter().copied());
        let lost = server.fault(creates.path("/locks/lock/**"), Fault::DropConnectionAfter);
        server.refuse_connections();
        stage.begin_to_wait()?;
        within("the create", lost.hit()).await
    }

    async fn act(self, stage: &Stage<R>) -> Result<Ending, String> {
        stage.world.server.accept_connections();
        stage.waited().await
    }
}
