//! The transactions that a manager has seen: pure.
//!
//! The servers number their transactions, and a number never comes again: a new leader continues above all
//! that was committed. So a write that is applied below a transaction that was seen *before the write was
//! sent* proves that the servers have lost data, or were restored from a backup. Nothing else proves it: a
//! read of an old node has an old zxid, a server that is behind answers reads with old ones, and the answers
//! over several connections have no order.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Error;
use crate::znode::zxid::Zxid;

/// The highest transaction that the sessions of a manager have seen, and whether the servers went back behind
/// it.
#[derive(Debug, Default)]
pub(crate) struct ZxidHistory {
    highest: AtomicU64,
    reset: OnceLock<ServersReset>,
}

/// The servers went back behind a transaction that was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ServersReset {
    /// The transaction that was seen.
    pub(crate) seen: Zxid,
    /// A later transaction.
    pub(crate) now: Zxid,
}

impl ServersReset {
    /// The error of a call that is refused for that reason.
    pub(crate) fn error(self, path: &str) -> Error {
        Error::ServersReset { path: path.into(), seen: self.seen, now: self.now }
    }
}

/// The transactions that were seen before a write was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeenBefore(Zxid);

impl ZxidHistory {
    /// Records a transaction that an answer names.
    pub(crate) fn saw(&self, zxid: Zxid) {
        self.highest.fetch_max(zxid.as_u64(), Ordering::AcqRel);
    }

    /// To be called before a write is sent.
    pub(crate) fn before_write(&self) -> SeenBefore {
        let highest = self.highest.load(Ordering::Acquire);
        SeenBefore(Zxid::new(i64::from_ne_bytes(highest.to_ne_bytes())))
    }

    /// Records that a write was applied by this transaction. Returns the proof that the servers went back, if
    /// this is the first one.
    pub(crate) fn wrote(&self, before: SeenBefore, zxid: Zxid) -> Option<ServersReset> {
        if zxid > before.0 {
            self.saw(zxid);
            return None;
        }
        let proof = ServersReset { seen: before.0, now: zxid };
        self.reset.set(proof).is_ok().then_some(proof)
    }

    /// The proof that the servers went back, if there is one. It holds until the process ends: what it has
    /// granted and written before does not fit what the servers have.
    pub(crate) fn reset(&self) -> Option<ServersReset> {
        self.reset.get().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATER_EPOCH: i64 = 7 << 32;

    #[test]
    fn a_write_below_a_transaction_seen_before_it_was_sent_proves_that_the_servers_went_back() {
        let history = ZxidHistory::default();
        let first = history.before_write();
        assert_eq!(history.wrote(first, Zxid::new(354)), None);
        for zxid in [355, LATER_EPOCH, LATER_EPOCH + 1] {
            assert_eq!(history.wrote(history.before_write(), Zxid::new(zxid)), None);
        }
        let proof = ServersReset { seen: Zxid::new(LATER_EPOCH + 1), now: Zxid::new(17) };
        assert_eq!(history.wrote(history.before_write(), Zxid::new(17)), Some(proof));
        assert_eq!(history.wrote(history.before_write(), Zxid::new(18)), None, "told once");
        assert_eq!(history.reset(), Some(proof));
        assert_eq!(history.wrote(history.before_write(), Zxid::new(LATER_EPOCH * 2)), None);
        assert_eq!(history.reset(), Some(proof), "for ever");
    }

    #[test]
    fn neither_an_old_read_nor_an_answer_out_of_order_proves_anything() {
        let history = ZxidHistory::default();
        let (first, second) = (history.before_write(), history.before_write());
        assert_eq!(history.wrote(second, Zxid::new(21)), None);
        assert_eq!(history.wrote(first, Zxid::new(20)), None, "sent before the other one was answered");
        history.saw(Zxid::new(3));
        assert_eq!(history.wrote(history.before_write(), Zxid::new(22)), None);
        history.saw(Zxid::new(40));
        assert!(
            history.wrote(history.before_write(), Zxid::new(40)).is_some(),
            "no transaction has the number of another"
        );
    }

    #[test]
    fn zxids_are_compared_without_a_sign() {
        let history = ZxidHistory::default();
        assert_eq!(history.wrote(history.before_write(), Zxid::new(i64::MAX)), None);
        assert_eq!(
            history.wrote(history.before_write(), Zxid::new(i64::MIN)),
            None,
            "the epoch after 2³¹ − 1"
        );
        assert!(history.wrote(history.before_write(), Zxid::new(5)).is_some());
    }
}
