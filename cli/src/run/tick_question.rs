//! Whether the tick of the servers is longer than the setting, on which the lease rests.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::connection::ConnectionOptions;
use crate::exit::Failure;
use crate::four_letter_words::addresses;
use crate::output::warn;

/// How long the command waits for the answer when the program has ended.
const LAST_WAIT: Duration = Duration::from_millis(250);

/// A question to a server, which is on its way beside all else: nothing waits for it while the lock is held.
/// A message beside the program could stop the command, if nobody reads its errors, and with it the lease.
pub(super) struct TickQuestion {
    answer: Option<JoinHandle<Option<Duration>>>,
    setting: Duration,
}

impl TickQuestion {
    pub(super) fn ask(connection: &ConnectionOptions) -> Result<Self, Failure> {
        let settings = connection.with_file()?;
        let (words, mut servers) = (connection.words()?, addresses(settings.servers()?));
        // Not the same server for all commands.
        let first = usize::try_from(std::process::id()).unwrap_or_default().checked_rem(servers.len());
        servers.rotate_left(first.unwrap_or_default());
        let answer = tokio::spawn(async move { words.tick_time(&servers).await });
        Ok(Self { answer: Some(answer), setting: settings.tick_time() })
    }

    /// Warns, if the answer is there.
    pub(super) async fn warn_if_known(&mut self) {
        if self.answer.as_ref().is_some_and(JoinHandle::is_finished) {
            self.warn_soon().await;
        }
    }

    /// The same, and waits for the answer a little.
    pub(super) async fn warn_soon(&mut self) {
        let Some(answer) = self.answer.take() else { return };
        let setting = self.setting;
        if let Ok(Ok(Some(tick))) = timeout(LAST_WAIT, answer).await
            && tick > setting
        {
            warn(format_args!(
                "the servers have a tickTime of {tick:?}, and --tick-time is {setting:?}, which is too short \
                 to protect the program; give --tick-time {tick:?}"
            ));
        }
    }
}
