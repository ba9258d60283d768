use lockkeeper::{TxnError, TxnResult};
use lockkeeper_testserver::Op;

use super::{Ending, Scenario};
use crate::recipe::Recipe;
use crate::site::Site;
use crate::stage::{Stage, WRITTEN, say};

/// A transaction under a hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Commit<R>(pub(crate) R);

impl<R: Recipe> Scenario for Commit<R> {
    type Recipe = R;

    fn recipe(self) -> R {
        self.0
    }

    async fn set(self, stage: &Stage<R>) -> Result<(), String> {
        stage.make_directory().await?;
        stage.actor_connects().await?;
        stage.actor_holds().await
    }

    /// What was said of a commit is so, also at the end of the case.
    async fn act(self, stage: &Stage<R>) -> Result<Ending, String> {
        let hold = stage.take_mine()?;
        let node = format!("{WRITTEN}/n-").parse().map_err(say)?;
        let (committed, is_valid) = {
            let grant = hold.grant().ok_or("nothing is held")?;
            let claims = grant.claims();
            let held = claims.first().ok_or("nothing is held")?.held;
            let committed = held.txn().create_sequential(node, Vec::new()).commit().await;
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
        if committed.is_err() && is_valid && stage.was_undisturbed().await {
            return Err(format!("{committed:?}"));
        }
        stage.ended.send_replace(true);
        // What was held back would have been let go by now.
        if stage.mishap.is_some() {
            stage.everything_healed().await?;
        }
        let written = stage.written();
        if !(least..=most).contains(&written) {
            return Err(format!("{committed:?}, and {written} nodes were written"));
        }
        Ok(Ending::holding(said, hold))
    }

    fn is_tried(self, site: &Site) -> bool {
        site.is(Op::Multi) && site.has_path(&format!("{WRITTEN}/n-"))
    }

    /// No transaction was done twice, however late.
    fn verdict(self, stage: &Stage<R>) -> Result<(), String> {
        match stage.written() {
            0 | 1 => Ok(()),
            written => Err(format!("one transaction wrote {written} nodes")),
        }
    }
}
