use crate::sync::{AtomicBool, AtomicU64, AtomicUsize, OnceLock, Ordering};

/// What a node of a session is used for: its hold, and the transactions that rest on it. `I` is an instant.
///
/// Every method may be called by any thread at any time.
#[derive(Debug)]
pub(super) struct NodeFlags<I> {
    held: AtomicBool,
    /// When the node was granted.
    granted_at: OnceLock<I>,
    /// How often the lease had run out when the node was granted.
    expirations: AtomicU64,
    /// A transaction that replaces the node is in flight: if the node does not exist, the transaction may
    /// have deleted it.
    replacing: AtomicBool,
    /// A transaction that replaces the node got no answer, and was not found to be applied. It may be applied
    /// late.
    replaced_in_doubt: AtomicBool,
    /// The number of transactions that rest on the node and whose outcome is not known.
    unresolved_txns: AtomicUsize,
}

impl<I: PartialOrd> NodeFlags<I> {
    pub(super) fn new() -> Self {
        Self {
            held: AtomicBool::new(false),
            granted_at: OnceLock::new(),
            expirations: AtomicU64::new(0),
            replacing: AtomicBool::new(false),
            replaced_in_doubt: AtomicBool::new(false),
            unresolved_txns: AtomicUsize::new(0),
        }
    }

    pub(super) fn mark_held(&self, expirations: u64, now: I) {
        let _ = self.granted_at.set(now);
        self.expirations.store(expirations, Ordering::Release);
        self.held.store(true, Ordering::Release);
    }

    pub(super) fn is_held(&self) -> bool {
        self.held.load(Ordering::Acquire)
    }

    pub(super) fn is_held_since(&self, instant: &I) -> bool {
        self.is_held() && self.granted_at.get().is_some_and(|at| at <= instant)
    }

    /// Whether the node is held, and the lease has run out since the grant. `expirations` counts how often
    /// the lease has run out.
    pub(super) fn has_lapsed(&self, expirations: impl FnOnce() -> u64) -> bool {
        self.is_held() && expirations() != self.expirations.load(Ordering::Acquire)
    }

    pub(super) fn set_replacing(&self, replacing: bool) {
        self.replacing.store(replacing, Ordering::Release);
    }

    pub(super) fn is_replacing(&self) -> bool {
        self.replacing.load(Ordering::Acquire)
    }

    /// A transaction that replaces the node may be applied at any time. Called before the end of
    /// [`set_replacing`](Self::set_replacing).
    pub(super) fn set_replaced_in_doubt(&self) {
        self.replaced_in_doubt.store(true, Ordering::Release);
    }

    pub(super) fn is_replaced_in_doubt(&self) -> bool {
        self.replaced_in_doubt.load(Ordering::Acquire)
    }

    pub(super) fn begin_txn(&self) {
        self.unresolved_txns.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn settle_txn(&self) {
        self.unresolved_txns.fetch_sub(1, Ordering::AcqRel);
    }

    /// Whether no transaction in flight rests on the node.
    pub(super) fn is_settled(&self) -> bool {
        self.unresolved_txns.load(Ordering::Acquire) == 0
    }

    /// Whether exactly one transaction in flight rests on the node.
    pub(super) fn rests_once(&self) -> bool {
        self.unresolved_txns.load(Ordering::Acquire) == 1
    }
}
