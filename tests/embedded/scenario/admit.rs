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

/// The path of the limiter.
fn calls() -> String {
    format!("{LOCK}/calls")
}

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
            RateLimiter::new(&fixture.actor()?, calls(), STARTS, Duration::from_secs(60)).map_err(say)?;
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

    /// The starts that count are those of the try that was answered, and for each break of the link those of
    /// one whose answer was lost; a fault alone loses one.
    fn verdict(self, fixture: &Fixture) -> Result<(), String> {
        let path = calls();
        let data = fixture.server_fixture.server.inspect(|machine| machine.tree().node(&path)?.data.clone());
        let text = String::from_utf8_lossy(data.as_deref().unwrap_or_default()).into_owned();
        // Behind the line with the limit, each line begins with a number of starts.
        let starts = text.lines().skip(1).filter_map(|line| line.split(' ').next()?.parse::<u64>().ok());
        let (written, breaks) = (starts.sum::<u64>(), fixture.breaks().max(1));
        if written <= 1 + breaks {
            return Ok(());
        }
        Err(format!("{written} starts were used up, though the link broke {breaks} times at most"))
    }
}
