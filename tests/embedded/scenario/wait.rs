use std::time::Duration;

use super::{Ending, Scenario};
use crate::limit::within;
use crate::recipe::Recipe;
use crate::stage::{Stage, say};
use crate::world::LOCK;

/// A wait in line; the holder leaves once the waiter has settled down.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait<R>(pub(crate) R);

/// A wait in line; the holder leaves at the very moment the mishap strikes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitOvertaken<R>(pub(crate) R);

/// A wait behind two others. They leave one after the other, the second once the waiter has come near.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitBehindTwo<R>(pub(crate) R);

/// A wait in line whose connection broke.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitReconnecting<R>(pub(crate) R);

/// A wait that is not served in time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitTimesOut<R>(pub(crate) R);

async fn set_taken<R: Recipe>(stage: &Stage<R>) -> Result<(), String> {
    stage.make_directory().await?;
    stage.rival_holds().await?;
    stage.actor_connects().await
}

impl<R: Recipe> Scenario for Wait<R> {
    type Recipe = R;

    const WAITS: bool = true;

    fn recipe(self) -> R {
        self.0
    }

    async fn set(self, stage: &Stage<R>) -> Result<(), String> {
        set_taken(stage).await
    }

    async fn act(self, stage: &Stage<R>) -> Result<Ending, String> {
        stage.begin_to_wait()?;
        stage.actor_watches_or_failed(1).await?;
        stage.rival_releases().await?;
        stage.waited().await
    }
}

impl<R: Recipe> Scenario for WaitOvertaken<R> {
    type Recipe = R;

    const WAITS: bool = true;

    fn recipe(self) -> R {
        self.0
    }

    async fn set(self, stage: &Stage<R>) -> Result<(), String> {
        set_taken(stage).await
    }

    async fn act(self, stage: &Stage<R>) -> Result<Ending, String> {
        stage.begin_to_wait()?;
        let mut struck = stage.struck.subscribe();
        tokio::select! {
            watches = stage.actor_watches_or_failed(1) => watches?,
            _ = struck.wait_for(|struck| *struck) => {}
        }
        stage.rival_releases().await?;
        stage.waited().await
    }
}

impl<R: Recipe> Scenario for WaitBehindTwo<R> {
    type Recipe = R;

    const WAITS: bool = true;

    fn recipe(self) -> R {
        self.0
    }

    async fn set(self, stage: &Stage<R>) -> Result<(), String> {
        stage.make_directory().await?;
        stage.rival_holds().await?;
        stage.another_waits().await?;
        stage.actor_connects().await
    }

    async fn act(self, stage: &Stage<R>) -> Result<Ending, String> {
        stage.begin_to_wait()?;
        stage.actor_watches_or_failed(1).await?;
        stage.rival_releases().await?;
        stage.another_holds().await?;
        stage.actor_watches_or_failed(2).await?;
        stage.rival_releases().await?;
        stage.waited().await
    }
}

impl<R: Recipe> Scenario for WaitReconnecting<R> {
    type Recipe = R;

    const WAITS: bool = true;

    const RECONNECTS: u64 = 1;

    fn recipe(self) -> R {
        self.0
    }

    async fn set(self, stage: &Stage<R>) -> Result<(), String> {
        set_taken(stage).await?;
        stage.begin_to_wait()?;
        stage.actor_watches(R::WATCHES).await?;
        // Answers come in order: with this one, those of the watches have come.
        let (actor, lock) = (stage.actor()?, LOCK.parse().map_err(say)?);
        let answer = async { while actor.znodes().read(&lock).await.is_err() {} };
        within("an answer", answer).await?;
        stage.cut_off().await
    }

    async fn act(self, stage: &Stage<R>) -> Result<Ending, String> {
        stage.world.server.accept_connections();
        stage.actor_watches_or_failed(1).await?;
        stage.rival_releases().await?;
        stage.waited().await
    }
}

impl<R: Recipe> Scenario for WaitTimesOut<R> {
    type Recipe = R;

    fn recipe(self) -> R {
        self.0
    }

    async fn set(self, stage: &Stage<R>) -> Result<(), String> {
        set_taken(stage).await
    }

    async fn act(self, stage: &Stage<R>) -> Result<Ending, String> {
        let waited = self.0.acquire_timeout(stage.actor()?, Duration::from_millis(150)).await;
        let ending = match waited {
            Err(error) if error.is_timeout() => Ending::new("timeout"),
            other => stage.acquired(other)?,
        };
        stage.rival_releases().await?;
        Ok(ending)
    }
}
