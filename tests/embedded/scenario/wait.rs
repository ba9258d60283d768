use std::time::Duration;

use lockkeeper_test_recipes::AnyAdapter;

use super::{Ending, Scenario};
use crate::fixture::Fixture;
use crate::limit::within;
use crate::server_fixture::LOCK;

/// A wait; the holder releases once the waiter has its watch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait(pub(crate) AnyAdapter);

/// A wait; the holder releases at the moment of the fault.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitOvertaken(pub(crate) AnyAdapter);

/// A wait behind two others. They release one after the other, the second once the waiter is next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitBehindTwo(pub(crate) AnyAdapter);

/// A wait whose connection broke.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitReconnecting(pub(crate) AnyAdapter);

/// A wait that is not granted in time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitTimesOut(pub(crate) AnyAdapter);

async fn set_taken(fixture: &Fixture) -> Result<(), String> {
    fixture.make_directory().await?;
    fixture.rival_holds().await?;
    fixture.actor_connects().await
}

impl Scenario for Wait {
    const WAITS: bool = true;

    fn adapter(self) -> AnyAdapter {
        self.0
    }

    async fn set(self, fixture: &Fixture) -> Result<(), String> {
        set_taken(fixture).await
    }

    async fn act(self, fixture: &Fixture) -> Result<Ending, String> {
        fixture.begin_to_wait()?;
        fixture.actor_watches_or_failed(self.0.watches()).await?;
        fixture.rival_releases().await?;
        fixture.waited().await
    }
}

impl Scenario for WaitOvertaken {
    const WAITS: bool = true;

    fn adapter(self) -> AnyAdapter {
        self.0
    }

    async fn set(self, fixture: &Fixture) -> Result<(), String> {
        set_taken(fixture).await
    }

    async fn act(self, fixture: &Fixture) -> Result<Ending, String> {
        fixture.begin_to_wait()?;
        let mut injected = fixture.injected.subscribe();
        tokio::select! {
            watches = fixture.actor_watches_or_failed(self.0.watches()) => watches?,
            _ = injected.wait_for(|injected| *injected) => {}
        }
        fixture.rival_releases().await?;
        fixture.waited().await
    }
}

impl Scenario for WaitBehindTwo {
    const WAITS: bool = true;

    fn adapter(self) -> AnyAdapter {
        self.0
    }

    async fn set(self, fixture: &Fixture) -> Result<(), String> {
        fixture.make_directory().await?;
        fixture.rival_holds().await?;
        fixture.another_waits().await?;
        fixture.actor_connects().await
    }

    async fn act(self, fixture: &Fixture) -> Result<Ending, String> {
        fixture.begin_to_wait()?;
        fixture.actor_watches_or_failed(self.0.watches()).await?;
        fixture.rival_releases().await?;
        fixture.another_holds().await?;
        fixture.actor_watches_or_failed(self.0.watches()).await?;
        fixture.rival_releases().await?;
        fixture.waited().await
    }
}

impl Scenario for WaitReconnecting {
    const WAITS: bool = true;

    const RECONNECTS: u64 = 1;

    fn adapter(self) -> AnyAdapter {
        self.0
    }

    async fn set(self, fixture: &Fixture) -> Result<(), String> {
        set_taken(fixture).await?;
        fixture.begin_to_wait()?;
        fixture.actor_watches(self.0.watches()).await?;
        // Answers come in order: with this one, those of the watches have come.
        let actor = fixture.actor()?;
        let answer = async { while actor.znodes().read(LOCK).await.is_err() {} };
        within("an answer", answer).await?;
        fixture.cut_off().await
    }

    async fn act(self, fixture: &Fixture) -> Result<Ending, String> {
        fixture.server_fixture.server.accept_connections();
        fixture.actor_watches_or_failed(self.0.watches()).await?;
        fixture.rival_releases().await?;
        fixture.waited().await
    }
}

impl Scenario for WaitTimesOut {
    fn adapter(self) -> AnyAdapter {
        self.0
    }

    async fn set(self, fixture: &Fixture) -> Result<(), String> {
        set_taken(fixture).await
    }

    async fn act(self, fixture: &Fixture) -> Result<Ending, String> {
        let waited = self.0.acquire_timeout(fixture.target()?, Duration::from_millis(150)).await;
        let ending = match waited {
            Err(error) if error.is_timeout() => Ending::new("timeout"),
            other => fixture.acquired(other)?,
        };
        fixture.rival_releases().await?;
        Ok(ending)
    }
}
