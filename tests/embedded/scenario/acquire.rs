use lockkeeper_test_recipes::AnyAdapter;
use lockkeeper_testserver::{Fault, Op, When};

use super::{Ending, Scenario};
use crate::fixture::Fixture;
use crate::limit::within;

/// An acquire of a free lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acquire(pub(crate) AnyAdapter);

/// The same, with a directory that has to be created first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AcquireMakingDirectory(pub(crate) AnyAdapter);

/// An acquire whose create lost its answer: its connection broke after the create was applied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AcquireRecovering(pub(crate) AnyAdapter);

impl Scenario for Acquire {
    fn adapter(self) -> AnyAdapter {
        self.0
    }

    async fn set(self, fixture: &Fixture) -> Result<(), String> {
        fixture.make_directory().await?;
        fixture.actor_connects().await
    }

    async fn act(self, fixture: &Fixture) -> Result<Ending, String> {
        fixture.acquired(self.0.acquire(fixture.target()?).await)
    }
}

impl Scenario for AcquireMakingDirectory {
    fn adapter(self) -> AnyAdapter {
        self.0
    }

    async fn set(self, fixture: &Fixture) -> Result<(), String> {
        fixture.actor_connects().await
    }

    async fn act(self, fixture: &Fixture) -> Result<Ending, String> {
        fixture.acquired(self.0.acquire(fixture.target()?).await)
    }
}

impl Scenario for AcquireRecovering {
    const RECONNECTS: u64 = 1;

    fn adapter(self) -> AnyAdapter {
        self.0
    }

    async fn set(self, fixture: &Fixture) -> Result<(), String> {
        fixture.make_directory().await?;
        fixture.actor_connects().await?;
        let server = &fixture.server_fixture.server;
        let create = if self.0.creates_by_transaction() { Op::Multi } else { Op::Create2 };
        let lost = server.fault(When::op(create).path("/locks/lock/**"), Fault::DropConnectionAfter);
        server.refuse_connections();
        fixture.begin_to_wait()?;
        within("the create", lost.hit()).await
    }

    async fn act(self, fixture: &Fixture) -> Result<Ending, String> {
        fixture.server_fixture.server.accept_connections();
        fixture.waited().await
    }
}
