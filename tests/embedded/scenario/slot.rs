//! A slot of a schedule, and a value that is initialised once.

use std::time::Duration;

use lockkeeper::schedule::Missed;
use lockkeeper::{Error, OnceCell, Schedule};
use lockkeeper_test_recipes::AnyAdapter;
use lockkeeper_test_recipes::mutex::Plain;

use super::{Ending, Scenario};
use crate::fixture::{Fixture, WRITTEN, say};
use crate::injected_fault::InjectedFault;
use crate::server_fixture::{LOCK, children};

/// A slot that is done together with a write. The contender behind the actor takes a mutex beside it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DoSlot;

/// The get of a value that does not exist. The contender behind the actor takes a mutex beside it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Initialise;

fn is_refusal(fixture: &Fixture, error: &Error) -> bool {
    let is_refused = matches!(error, Error::Refused { .. } | Error::NotCommitted(_));
    is_refused && fixture.injected_fault.is_some_and(InjectedFault::refuses)
}

impl Scenario for DoSlot {
    fn adapter(self) -> AnyAdapter {
        &Plain
    }

    async fn set(self, fixture: &Fixture) -> Result<(), String> {
        fixture.make_directory().await?;
        fixture.actor_connects().await
    }

    async fn act(self, fixture: &Fixture) -> Result<Ending, String> {
        let schedule = Schedule::new(&fixture.actor()?, LOCK, Duration::from_millis(5)).map_err(say)?;
        let slot = match schedule.with_missed(Missed::CatchUp).due().await {
            Ok(slot) => slot,
            Err(error) if is_refusal(fixture, &error) => return Ok(Ending::new("refused")),
            Err(error) => return Err(format!("{error} ({error:?})")),
        };
        match slot.done_with("", |txn| txn.create_sequential(format!("{WRITTEN}/w-"), b"".to_vec())).await {
            Ok(()) => Ok(Ending::new("done")),
            Err(error) if error.is_lost() => Ok(Ending::new("lost")),
            Err(error) if error.outcome_unknown() && !fixture.was_undisturbed().await => {
                Ok(Ending::new("unknown"))
            }
            Err(error) if is_refusal(fixture, &error) => Ok(Ending::new("refused")),
            Err(error) => Err(format!("{error} ({error:?})")),
        }
    }

    /// The write and the record of the slot are committed together.
    fn verdict(self, fixture: &Fixture) -> Result<(), String> {
        let slots = format!("{LOCK}/slots");
        let done = fixture.server_fixture.server.inspect(|machine| {
            let data = |name: &String| machine.tree().node(&format!("{slots}/{name}"))?.data.clone();
            children(machine, &slots)
                .iter()
                .filter_map(data)
                .filter(|data| data.starts_with(b"done "))
                .count()
        });
        match (done, fixture.written()) {
            (done, written) if done == written && done <= 1 => Ok(()),
            (done, written) => Err(format!("{done} slots were done, and {written} written")),
        }
    }
}

impl Scenario for Initialise {
    fn adapter(self) -> AnyAdapter {
        &Plain
    }

    async fn set(self, fixture: &Fixture) -> Result<(), String> {
        fixture.make_directory().await?;
        fixture.actor_connects().await
    }

    async fn act(self, fixture: &Fixture) -> Result<Ending, String> {
        let cell = OnceCell::new(&fixture.actor()?, LOCK).map_err(say)?;
        let mut runs = 0;
        let init = || {
            runs += 1;
            std::future::ready(format!("run {runs}").into_bytes())
        };
        let value = match cell.get_or_init(init).await {
            Ok(value) => value,
            Err(error) if is_refusal(fixture, &error) => return Ok(Ending::new("refused")),
            Err(error) => return Err(format!("{error} ({error:?})")),
        };
        let stored = fixture
            .server_fixture
            .server
            .inspect(|machine| machine.tree().node(&format!("{LOCK}/value"))?.data.clone());
        match stored.as_deref() == Some(&value) {
            true => Ok(Ending::new("initialised")),
            false => Err(format!("returned {value:?}, and stored {stored:?}")),
        }
    }
}
