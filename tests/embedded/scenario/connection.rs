use std::time::Duration;

use lockkeeper_test_recipes::AnyAdapter;
use lockkeeper_test_recipes::mutex::Plain;
use lockkeeper_testserver::Op;

use super::{Ending, Scenario};
use crate::fixture::{Fixture, say};
use crate::injected_fault::InjectedFault;
use crate::server_fixture::builder;

/// A connection with nothing to do, and then an acquire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Idle;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Connect;

/// A shutdown while something is held.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shutdown;

impl Scenario for Idle {
    const BY_CLOCK: Option<Op> = Some(Op::Ping);

    fn adapter(self) -> AnyAdapter {
        &Plain
    }

    async fn set(self, fixture: &Fixture) -> Result<(), String> {
        fixture.make_directory().await?;
        let servers = fixture.server_fixture.server.connect_string();
        let idle = builder(&servers).lease_keep_alive(Duration::ZERO).connect().await.map_err(say)?;
        fixture.set_actor(idle);
        Ok(())
    }

    async fn act(self, fixture: &Fixture) -> Result<Ending, String> {
        fixture.everything_healed().await?;
        fixture.acquired(fixture.adapter.acquire(fixture.target()?).await)
    }
}

impl Scenario for Connect {
    fn adapter(self) -> AnyAdapter {
        &Plain
    }

    async fn set(self, fixture: &Fixture) -> Result<(), String> {
        fixture.make_directory().await
    }

    async fn act(self, fixture: &Fixture) -> Result<Ending, String> {
        fixture.actor_connects().await?;
        fixture.acquired(fixture.adapter.acquire(fixture.target()?).await)
    }
}

impl Scenario for Shutdown {
    fn adapter(self) -> AnyAdapter {
        &Plain
    }

    async fn set(self, fixture: &Fixture) -> Result<(), String> {
        fixture.make_directory().await?;
        fixture.actor_connects().await?;
        fixture.actor_holds().await
    }

    async fn act(self, fixture: &Fixture) -> Result<Ending, String> {
        let is_closed = || !fixture.server_fixture.server.sessions().contains(&fixture.session());
        match fixture.actor()?.shutdown().await {
            Ok(())
                if is_closed() || fixture.injected_fault.is_some_and(InjectedFault::hides_open_session) =>
            {
                Ok(Ending::new("closed"))
            }
            Ok(()) => Err("shut down, and the session lives".to_owned()),
            Err(error) if error.is_timeout() && !fixture.was_undisturbed().await => {
                Ok(Ending::new("timeout"))
            }
            Err(error) => Err(error.to_string()),
        }
    }
}
