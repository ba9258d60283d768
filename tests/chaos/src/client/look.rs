//! What a client writes down of a hold that it looks at.

use std::time::Duration;

use lockkeeper::Hold;

use super::Common;
use crate::clock;
use crate::history::What;

/// Between two looks at a guard.
pub(super) const LOOK: Duration = Duration::from_millis(50);
/// How often `lost()` is waited for this long, once a guard is not valid.
const LOSS_LOOKS: usize = 100;

impl Common {
    /// Writes down whether the hold is valid, and returns that.
    pub(super) async fn look(&self, task: usize, number: u64, hold: &Hold) -> bool {
        // First the clock: a guard that is valid after that was valid then.
        let at = clock::now();
        let left = u64::try_from(hold.valid_until().remaining().as_nanos()).unwrap_or(u64::MAX);
        match hold.check() {
            Ok(()) => {
                let until = at.saturating_add(left);
                self.journal.say_at(at, task, What::Valid { hold: number, until });
                true
            }
            Err(_) if self.cheats => {
                let long = 3 * u64::try_from(self.session.as_nanos()).unwrap_or_default();
                self.journal.say_at(at, task, What::Valid { hold: number, until: at + long });
                false
            }
            Err(lost) => {
                let why = lost.reason.to_string();
                self.journal.say_at(at, task, What::Invalid { hold: number, why });
                self.expect_loss(task, number, hold).await;
                false
            }
        }
    }

    /// `lost()` of a hold that is not valid resolves, too. Polled often rather than for long: a
    /// process that was frozen finds every limit passed.
    async fn expect_loss(&self, task: usize, number: u64, hold: &Hold) {
        for _ in 0..LOSS_LOOKS {
            if tokio::time::timeout(LOOK, hold.lost()).await.is_ok() {
                return;
            }
        }
        let text = "is_valid() says false, lost() says nothing".to_owned();
        self.journal.say(task, What::Contradiction { hold: number, text });
    }
}
