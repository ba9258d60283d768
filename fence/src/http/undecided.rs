use std::sync::atomic::{AtomicU64, Ordering};

use tracing::{info, warn};

use crate::error::FenceError;

/// The requests in a row on which the store of a layer did not decide, shared by all clones of the layer: the
/// log tells the first of them, and their end.
#[derive(Debug, Default)]
pub(super) struct Undecided(AtomicU64);

impl Undecided {
    /// The store has admitted a request, or refused it.
    pub(super) fn decided(&self) {
        // Not a write for each request.
        if self.0.load(Ordering::Relaxed) == 0 {
            return;
        }
        let undecided = self.0.swap(0, Ordering::Relaxed);
        if undecided > 0 {
            info!(undecided, "the store of a fence decides again");
        }
    }

    /// The store did not decide on a request, which is answered with 503.
    pub(super) fn failed(&self, error: &FenceError) {
        if self.0.fetch_add(1, Ordering::Relaxed) == 0 {
            warn!(%error, "the store of a fence does not decide; requests are answered with 503");
        }
    }
}
