//! [`Election`].

use futures::future::BoxFuture;
use lockkeeper::locks::ZooKeeperLock;
use lockkeeper::{Election, Error, Hold, Leadership, ReleaseError, Txn};
use lockkeeper_core::{HoldExt, NodeMonitor};

use crate::mutex::granted;
use crate::{AcquireMode, Adapter, Grant, Seen, Taking, Target};

/// A candidate, in the layout of Curator's `LeaderLatch` or of its `LeaderSelector`.
#[derive(Clone, Copy, Debug)]
pub enum Candidate {
    /// The layout of `LeaderLatch`.
    Latch,
    /// The layout of `LeaderSelector`.
    Selector,
}

impl Candidate {
    fn election(self, target: Target) -> Result<Election, Error> {
        match self {
            Self::Latch => Election::new(&target.manager, target.path, "candidate"),
            Self::Selector => Election::in_selector_layout(&target.manager, target.path, "candidate"),
        }
    }
}

impl Adapter for Candidate {
    fn take(&self, target: Target, mode: AcquireMode) -> Taking {
        let candidate = *self;
        Box::pin(async move {
            let election = candidate.election(target)?;
            granted(match mode {
                AcquireMode::Wait => election.campaign().await.map(Some),
                AcquireMode::WaitAtMost(limit) => election.campaign_timeout(limit).await.map(Some),
                AcquireMode::Try => election.try_campaign().await,
            })
        })
    }

    fn observe(&self, target: Target, mut seen: Seen) -> Option<BoxFuture<'static, ()>> {
        let election = self.election(target);
        Some(Box::pin(async move {
            // An observation may begin without a connection. It ends with its manager.
            let Ok(mut leaders) = election.expect("an election").observe().await else { return };
            while let Ok(leader) = leaders.changed().await {
                leader.into_iter().for_each(|leader| seen(leader.fencing_token().as_u64()));
            }
        }))
    }

    fn as_lock(&self, target: Target) -> Result<Option<Box<dyn ZooKeeperLock>>, Error> {
        Ok(Some(Box::new(self.election(target)?)))
    }
}

impl Grant for Leadership {
    fn holds(&self) -> Vec<&Hold> {
        vec![self.hold()]
    }

    fn release(self: Box<Self>) -> BoxFuture<'static, Result<(), ReleaseError>> {
        Box::pin((*self).resign())
    }

    fn monitor(&self) -> Option<NodeMonitor> {
        Some(self.hold().monitor())
    }

    fn txn(&self) -> Option<Txn<'_>> {
        Some(self.hold().txn())
    }
}
