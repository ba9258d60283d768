//! Once cells: whichever process comes first stores a value, and all others read it.

use std::time::Duration;

use lockkeeper::OnceCell;
use rand::RngExt;

use super::errand::Errand;
use crate::Failure;
use crate::clock;
use crate::fixture::LOCKS;
use crate::history::What;

/// How long all processes ask for the value of the same cell, in nanoseconds of the machine's clock.
const SPAN: u64 = 2_000_000_000;

impl Errand {
    /// Until everyone is to be quiet.
    pub(super) async fn ask_for_values(mut self) -> Result<(), Failure> {
        let quiet = self.common.quiet.clone();
        while !quiet.is_cancelled() {
            let pause = Duration::from_millis(self.rng.random_range(10..400));
            self.rest(pause).await;
            let number = clock::now() / SPAN;
            let path = format!("{LOCKS}/cells/{number}");
            let cell = OnceCell::new(self.common.pool.for_path(&path), path.as_str())?;
            let attempt = self.common.journal.number();
            // Different for each call of each process.
            let mine = format!("{} {attempt} {}", std::process::id(), self.rng.random::<u64>());
            let takes = Duration::from_millis(self.rng.random_range(5..300));
            // At times dropped wherever the call is by then.
            let limit = Duration::from_millis(self.rng.random_range(100..4_000));
            let init = || async {
                tokio::time::sleep(takes).await;
                mine.clone().into_bytes()
            };
            let asked = tokio::time::timeout(limit, cell.get_or_init(init));
            match quiet.run_until_cancelled(asked).await {
                Some(Ok(Ok(value))) => {
                    let value = String::from_utf8_lossy(&value).into_owned();
                    self.say(What::Value { cell: number, value });
                }
                Some(Ok(Err(error))) => self.failed(attempt, &error).await,
                Some(Err(_)) | None => {}
            }
        }
        Ok(())
    }
}
