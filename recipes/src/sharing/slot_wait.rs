use std::sync::Arc;

use lockkeeper_core::{Deadline, Error, LONG_WAIT, LockQueue, Phase};
use tokio::sync::oneshot;
use tracing::field::display;
use tracing::info;

use super::held_here::with_held_here;
use super::node_sharing::{NodeSharing, SlotWake};

/// A task that waits for a slot. Its drop ends the wait. A slot that was sent to it goes to the next task.
pub(super) struct SlotWait<'a> {
    sharing: &'a Arc<NodeSharing>,
    number: u64,
    slot: oneshot::Receiver<SlotWake>,
    is_over: bool,
}

impl<'a> SlotWait<'a> {
    pub(super) fn new(sharing: &'a Arc<NodeSharing>, number: u64, slot: oneshot::Receiver<SlotWake>) -> Self {
        Self { sharing, number, slot, is_over: false }
    }

    pub(super) async fn woken(mut self, queue: &LockQueue, deadline: Deadline) -> Result<SlotWake, Error> {
        loop {
            tokio::select! {
                biased;
                () = queue.manager().closing() => return Err(Error::Closed),
                woken = &mut self.slot => {
                    self.is_over = true;
                    return match woken {
                        Ok(SlotWake::Failed(error)) => Err(error),
                        Ok(woken) => Ok(woken),
                        Err(_) => Err(Error::Closed),
                    };
                }
                () = deadline.or_after(LONG_WAIT).passed() => {
                    let (ahead, waited) = (self.sharing.ahead(self.number), deadline.waited());
                    let (path, held_here) = (queue.whole_path(), queue.held_here());
                    if deadline.has_passed() {
                        let text = format!("waiting for other tasks of this process, {ahead} ahead");
                        let phase = Phase::Recipe(with_held_here(text, "the lock is", held_here).into());
                        return Err(Error::Timeout { phase, path, waited });
                    }
                    let held_here = held_here.map(display);
                    info!(
                        %path, ahead, held_here, ?waited,
                        "still waiting for other tasks of this process"
                    );
                }
            }
        }
    }
}

impl Drop for SlotWait<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        if !self.sharing.cancel_wait(self.number) {
            // A slot that is on its way ends: where it is sent, or here if it was sent before the close.
            self.slot.close();
            drop(self.slot.try_recv());
        }
    }
}
