use crate::sync::{Arc, AtomicUsize, Ordering};

/// Limits the size of the paths that a session watches, in bytes.
///
/// The client sets its watches again at each reconnect, and cannot match the answers if their paths exceed
/// 128 KiB. The session is lost then, although the server is healthy. So the watched paths stay below that. A
/// task that gets no room polls instead of waiting for an event.
#[derive(Clone, Debug, Default)]
pub(crate) struct WatchBudget {
    used: Arc<AtomicUsize>,
}

const WATCHED_BYTES_MAX: usize = 112 * 1024;

impl WatchBudget {
    /// Room for a necessary watch; `None` if there is none left.
    pub(crate) fn reserve(&self, path: &str) -> Option<Reservation> {
        self.reserve_below(path, WATCHED_BYTES_MAX)
    }

    /// Room for a watch that only saves time: at most half of the budget.
    pub(crate) fn reserve_spare(&self, path: &str) -> Option<Reservation> {
        self.reserve_below(path, WATCHED_BYTES_MAX / 2)
    }

    fn reserve_below(&self, path: &str, max: usize) -> Option<Reservation> {
        let bytes = path.len();
        let grown = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= max);
        self.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, grown).ok()?;
        Some(Reservation { used: Arc::clone(&self.used), bytes })
    }
}

/// Room for one watch. Dropping it gives the room back.
#[derive(Debug)]
pub(crate) struct Reservation {
    used: Arc<AtomicUsize>,
    bytes: usize,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.used.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_given_back_and_half_is_kept_for_necessary_watches() {
        let budget = WatchBudget::default();
        let path = "x".repeat(WATCHED_BYTES_MAX / 2);
        let spare = budget.reserve_spare(&path).unwrap();
        assert!(budget.reserve_spare("/a").is_none());
        let needed = budget.reserve(&path).unwrap();
        assert!(budget.reserve("/a").is_none());
        drop(needed);
        assert!(budget.reserve("/a").is_some());
        drop(spare);
        assert!(budget.reserve_spare(&path).is_some());
    }
}
