//! Curator's elections, in the hands of a [`CuratorThread`].

use std::time::Duration;

use super::curator::{CuratorGrant, CuratorPeer, CuratorThread, granted};
use super::error::PeerError;
use crate::timing::Timing;

/// The classes of Curator that elect a leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CuratorElection {
    /// `LeaderLatch`.
    Latch,
    /// `LeaderSelector`.
    Selector,
}

impl CuratorElection {
    /// The verbs of the driver: to lead, to resign, and to name the participants.
    fn verbs(self) -> [&'static str; 3] {
        match self {
            Self::Latch => ["latch", "unlatch", "latched"],
            Self::Selector => ["select", "unselect", "selected"],
        }
    }
}

impl CuratorThread {
    /// Starts a candidate with the name of this thread as its id, and waits until it leads.
    ///
    /// # Errors
    ///
    /// [`PeerError::Timeout`], after which the candidate waits on; else [`PeerError::Failed`] with what
    /// Curator threw.
    pub async fn campaign(&self, class: CuratorElection, path: &str) -> Result<CuratorGrant, PeerError> {
        let [verb, ..] = class.verbs();
        let answer = self.ask(verb, path, " -1", Timing::settle()).await?;
        granted(&answer)?.ok_or_else(|| PeerError::malformed(answer))
    }

    /// As [`campaign`](Self::campaign), for at most `timeout` by Curator's clock. After a timeout, the
    /// candidate is closed, and the result is `None`.
    ///
    /// # Errors
    ///
    /// [`PeerError::Failed`] with what Curator threw.
    pub async fn campaign_timeout(
        &self,
        class: CuratorElection,
        path: &str,
        timeout: Duration,
    ) -> Result<Option<CuratorGrant>, PeerError> {
        let [verb, ..] = class.verbs();
        let limit = timeout + Timing::event();
        granted(&self.ask(verb, path, &format!(" {}", timeout.as_millis()), limit).await?)
    }

    /// Ends the leadership.
    ///
    /// # Errors
    ///
    /// As [`campaign_timeout`](Self::campaign_timeout).
    pub async fn resign(&self, class: CuratorElection, path: &str) -> Result<(), PeerError> {
        let [_, verb, _] = class.verbs();
        self.ask(verb, path, "", Timing::event()).await.map(|_| ())
    }
}

impl CuratorPeer {
    /// `getParticipants` of the class: the ids in Curator's order. That of the leader has an asterisk.
    ///
    /// # Errors
    ///
    /// As [`CuratorThread::campaign_timeout`].
    pub async fn elected(&self, class: CuratorElection, path: &str) -> Result<Vec<String>, PeerError> {
        let [.., verb] = class.verbs();
        let answer = self.thread("reader").ask(verb, path, "", Timing::event()).await?;
        Ok(answer.split_whitespace().map(str::to_owned).collect())
    }
}
