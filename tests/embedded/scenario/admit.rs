//! Leave to start.

use std::time::Duration;

use lockkeeper::{Error, RateLimiter};
use lockkeeper_test_recipes::AnyAdapter;
use lockkeeper_test_recipes::mutex::Plain;

use super::{Ending, Scenario};
use crate::fixture::{Fixture, say};
use crate::injected_fault::InjectedFault;
use crate::server_fixture::LOCK;

/// An admission. The contender behind the actor takes a mutex beside it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admit;

/// More than one, so that an admission whose answer is lost does not fill the window.
const STARTS: u32 = 8;

impl Scenario for Admit {
    fn adapter(self) -> AnyAdapter {
        &Plain
    }

    async fn set(self, fixture: &Fixture) -> Result<(), String> {
        fixture.make_directory().await?;
        fixture.actor_connects().await
    }

    async fn act(self, fixture: &Fixture) -> Result<Ending, String> {
        let limiter =
            RateLimiter::new(&fixture.actor()?, LOCK, STARTS, Duration::from_secs(60)).map_err(say)?;
        match limiter.admit().await {
            Ok(admission) if admission.is_fresh() => Ok(Ending::new("admitted")),
            Ok(_) => Ok(Ending::new("admitted too late, and said so")),
            Err(Error::Refused { refusal, .. })
                if fixture.injected_fault.is_some_and(InjectedFault::refuses) =>
            {
                Ok(Ending::new(format!("refused: {refusal:?}")))
            }
            Err(error) => Err(format!("{error} ({error:?})")),
        }
    }

    /// The starts that are written are those that were committed: the try that was answered, and for each
    /// break of the link one whose answer was lost; a fault alone loses one.
    fn verdict(self, fixture: &Fixture) -> Result<(), String> {
        let starts = format!("{LOCK}/starts");
        let written = fixture
            .server_fixture
            .server
            .inspect(|machine| machine.tree().node(&starts).map_or(0, |node| node.children.len()));
        let breaks = fixture.breaks().max(1);
        if u64::try_from(written).is_ok_and(|written| written <= 1 + breaks) {
            return Ok(());
        }
        Err(format!("{written} starts were used up, though the link broke {breaks} times at most"))
    }
}
