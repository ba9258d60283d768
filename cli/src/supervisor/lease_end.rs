use super::boot_time::BootTime;
use super::policy::{OnLoss, Policy};

/// The end of the lease, as far as the command or the supervisor knows it.
///
/// A confirmation of the session moves it forward, never back: confirmations may arrive late. A loss moves it
/// back, never forward: a lease that is over stays over. After a loss nothing extends it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeaseEnd {
    end: BootTime,
    is_lost: bool,
}

impl LeaseEnd {
    pub(crate) fn new(end: BootTime) -> Self {
        Self { end, is_lost: false }
    }

    pub(crate) fn end(&self) -> BootTime {
        self.end
    }

    /// The servers have confirmed the session. Returns whether the end has moved.
    pub(crate) fn extend(&mut self, end: BootTime) -> bool {
        let is_moved = !self.is_lost && self.end < end;
        if is_moved {
            self.end = end;
        }
        is_moved
    }

    /// The lock is lost, which leaves the program the grace at most.
    pub(crate) fn lose(&mut self, policy: &Policy, now: BootTime) {
        self.is_lost = true;
        match policy.on_loss {
            OnLoss::Ignore => {}
            OnLoss::Kill => self.end = self.end.min(now),
            OnLoss::Term | OnLoss::Run(_) => self.end = self.end.min(now.after(policy.grace)),
        }
    }
}
