use lockkeeper::error::TxnError;
use lockkeeper::znodes::TxnResult;
use lockkeeper_test_recipes::AnyAdapter;
use lockkeeper_testserver::Op;

use super::{Ending, Scenario};
use crate::fixture::{Fixture, WRITTEN};
use crate::injection_point::InjectionPoint;

/// A transaction under a hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Commit(pub(crate) AnyAdapter);

impl Scenario for Commit {
    fn adapter(self) -> AnyAdapter {
        self.0
    }

    async fn set(self, fixture: &Fixture) -> Result<(), String> {
        fixture.make_directory().await?;
        fixture.actor_connects().await?;
        fixture.actor_holds().await
    }

    /// What was said of a commit is so, also at the end of the case.
    async fn act(self, fixture: &Fixture) -> Result<Ending, String> {
        let hold = fixture.take_mine()?;
        let node = format!("{WRITTEN}/n-");
        let (committed, is_valid) = {
            let grant = hold.grant().ok_or("nothing is held")?;
            let held = *grant.holds().first().ok_or("nothing is held")?;
            let committed = held.txn().create_sequential(node, "").commit().await;
            (committed, held.is_valid())
        };
        let (least, most, said) = match &committed {
            Ok(results) if matches!(results[..], [TxnResult::Created(_)]) => (1, 1, "committed"),
            Ok(results) => return Err(format!("{results:?}")),
            Err(TxnError::Lost(_)) => (0, 0, "lost"),
            Err(TxnError::Refused { .. }) => (0, 0, "refused"),
            Err(error) if error.outcome_unknown() => (0, 1, "unknown"),
            Err(_) => (0, 0, "failed"),
        };
        if committed.is_err() && is_valid && fixture.was_undisturbed().await {
            return Err(format!("{committed:?}"));
        }
        fixture.ended.send_replace(true);
        // What was held back would have been let go by now.
        if fixture.injected_fault.is_some() {
            fixture.everything_healed().await?;
        }
        let written = fixture.written();
        if !(least..=most).contains(&written) {
            return Err(format!("{committed:?}, and {written} nodes were written"));
        }
        Ok(Ending::holding(said, hold))
    }

    fn is_tried(self, injection_point: &InjectionPoint) -> bool {
        injection_point.is(Op::Multi) && injection_point.has_path(&format!("{WRITTEN}/n-"))
    }

    /// No transaction was done twice, however late.
    fn verdict(self, fixture: &Fixture) -> Result<(), String> {
        match fixture.written() {
            0 | 1 => Ok(()),
            written => Err(format!("one transaction wrote {written} nodes")),
        }
    }
}
