use std::time::Duration;

use lockkeeper_test_recipes::AnyAdapter;
use lockkeeper_testserver::Op;

use super::{Ending, Scenario};
use crate::fixture::Fixture;
use crate::injected_fault::InjectedFault;
use crate::injection_point::InjectionPoint;
use crate::limit::within;
use crate::oracle::Hold;

/// A hold that lasts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HoldOn(pub(crate) AnyAdapter);

/// A hold whose connection broke.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HoldReconnecting(pub(crate) AnyAdapter);

impl Scenario for HoldOn {
    const BY_CLOCK: Option<Op> = Some(Op::Multi);

    fn adapter(self) -> AnyAdapter {
        self.0
    }

    async fn set(self, fixture: &Fixture) -> Result<(), String> {
        fixture.make_directory().await?;
        fixture.actor_connects().await?;
        fixture.actor_holds().await
    }

    async fn act(self, fixture: &Fixture) -> Result<Ending, String> {
        hold_on(fixture, fixture.take_mine()?).await
    }
}

impl Scenario for HoldReconnecting {
    const RECONNECTS: u64 = 1;

    fn adapter(self) -> AnyAdapter {
        self.0
    }

    async fn set(self, fixture: &Fixture) -> Result<(), String> {
        fixture.make_directory().await?;
        fixture.actor_connects().await?;
        fixture.actor_holds().await?;
        fixture.cut_off().await
    }

    async fn act(self, fixture: &Fixture) -> Result<Ending, String> {
        fixture.server_fixture.server.accept_connections();
        hold_on(fixture, fixture.take_mine()?).await
    }

    fn is_tried(self, injection_point: &InjectionPoint) -> bool {
        !injection_point.is(Op::Ping)
    }
}

/// Holds until everything healed and the hold is lost, or its session is confirmed anew if that lives on.
async fn hold_on(fixture: &Fixture, hold: Hold) -> Result<Ending, String> {
    let lost = async {
        while hold.is_valid() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        healed = fixture.everything_healed() => healed?,
        // On a busy machine, by itself, before anything happened to it: then nothing may happen any more.
        () = lost => {}
        () = fixture.nothing_is_injected() => return Ok(Ending::holding("still held", hold)),
    }
    if *fixture.injected.borrow() {
        fixture.everything_healed().await?;
    }
    let begun = hold.valid_until();
    let must_be_lost = fixture.injected_fault.is_some_and(InjectedFault::ends_session);
    let settled = async {
        while hold.is_valid() && (must_be_lost || hold.valid_until() <= begun) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within("a hold that is either lost or confirmed", settled).await?;
    let said = if hold.is_valid() { "still held" } else { "lost" };
    Ok(Ending::holding(said, hold))
}
