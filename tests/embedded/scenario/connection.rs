use std::time::Duration;

use lockkeeper_testserver::Op;

use super::{Ending, Scenario};
use crate::mishap::Mishap;
use crate::recipe::{Plain, Recipe};
use crate::stage::{Stage, say};
use crate::world::builder;

/// A connection with nothing to do, and then an acquire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Idle;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Connect;

/// A shutdown while something is held.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shutdown;

impl Scenario for Idle {
    type Recipe = Plain;

    const BY_CLOCK: Option<Op> = Some(Op::Ping);

    fn recipe(self) -> Plain {
        Plain
    }

    async fn set(self, stage: &Stage<Plain>) -> Result<(), String> {
        stage.make_directory().await?;
        let servers = stage.world.server.connect_string();
        let idle = builder(&servers).keep_confirmed(Duration::ZERO).connect().await.map_err(say)?;
        stage.set_actor(idle);
        Ok(())
    }

    async fn act(self, stage: &Stage<Plain>) -> Result<Ending, String> {
        stage.everything_healed().await?;
        stage.acquired(Plain.acquire(stage.actor()?).await)
    }
}

impl Scenario for Connect {
    type Recipe = Plain;

    fn recipe(self) -> Plain {
        Plain
    }

    async fn set(self, stage: &Stage<Plain>) -> Result<(), String> {
        stage.make_directory().await
    }

    async fn act(self, stage: &Stage<Plain>) -> Result<Ending, String> {
        stage.actor_connects().await?;
        stage.acquired(Plain.acquire(stage.actor()?).await)
    }
}

impl Scenario for Shutdown {
    type Recipe = Plain;

    fn recipe(self) -> Plain {
        Plain
    }

    async fn set(self, stage: &Stage<Plain>) -> Result<(), String> {
        stage.make_directory().await?;
        stage.actor_connects().await?;
        stage.actor_holds().await
    }

    async fn act(self, stage: &Stage<Plain>) -> Result<Ending, String> {
        let is_closed = || !stage.world.server.sessions().contains(&stage.session());
        match stage.actor()?.shutdown().await {
            Ok(()) if is_closed() || stage.mishap.is_some_and(Mishap::hides_open_session) => {
                Ok(Ending::new("closed"))
            }
            Ok(()) => Err("shut down, and the session lives".to_owned()),
            Err(error) if error.is_timeout() && !stage.was_undisturbed().await => Ok(Ending::new("timeout")),
            Err(error) => Err(error.to_string()),
        }
    }
}
