use std::fmt::{self, Display, Formatter};

/// The fencing token of a grant: later grants of a lock carry greater ones.
///
/// Give it to every resource the lock protects, and let the resource refuse a token smaller than one it has
/// seen: that, and nothing a client does, stops a paused process from writing after its lock went to someone
/// else.
///
/// It starts with the transaction id (zxid) at which the server created the holder's node: one order over the
/// whole ensemble, also when a lock's directory was removed and made again. An ensemble restored from a
/// backup, or set up anew, starts its zxids, and so its tokens, again: raise the resource's mark by hand
/// then.
///
/// # Examples
///
/// ```
/// # use lockkeeper_core::FencingToken;
/// struct Stock { newest: Option<FencingToken>, seats: u32 }
///
/// impl Stock {
///     fn write(&mut self, token: FencingToken, seats: u32) -> Result<(), &'static str> {
///         if self.newest.is_some_and(|newest| token < newest) {
///             return Err("an earlier holder: refused");
///         }
///         self.newest = Some(token);
///         self.seats = seats;
///         Ok(())
///     }
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken {
    // The order of the fields is the order of the tokens.
    zxid: u64,
    handover: u32,
}

impl FencingToken {
    pub(crate) fn from_czxid(czxid: i64) -> Self {
        Self { zxid: czxid.unsigned_abs(), handover: 0 }
    }

    /// The transaction id as a number, for resources that store one integer. Guards between which a node was
    /// handed over within a process share it: [`handover`](Self::handover) tells those apart.
    #[must_use]
    pub fn as_u64(self) -> u64 {
        self.zxid
    }

    /// How often the node had been handed over within its process before this grant; 0 unless the lock is one
    /// that keeps its node. It counts where the [transaction ids](Self::as_u64) are equal.
    #[must_use]
    pub fn handover(self) -> u32 {
        self.handover
    }

    /// The token of the next grant that rests on the same node; `None` after the last.
    pub(crate) fn handed_over(self) -> Option<Self> {
        Some(Self { handover: self.handover.checked_add(1)?, ..self })
    }
}

impl Display for FencingToken {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:#x}.{}", self.zxid, self.handover)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_ordered_by_zxid_first() {
        let early = FencingToken { zxid: 4, handover: 9 };
        let late = FencingToken { zxid: 5, handover: 0 };
        assert!(early < late);
        assert!(early < FencingToken { zxid: 4, handover: 10 });
        assert_eq!(FencingToken::from_czxid(0x1_0000_0003).as_u64(), 0x1_0000_0003);
    }

    #[test]
    fn a_token_handed_over_is_greater_and_below_every_later_zxid() {
        let first = FencingToken::from_czxid(4);
        let second = first.handed_over().unwrap();
        assert!(first < second && second < FencingToken::from_czxid(5));
        assert_eq!((second.as_u64(), second.handover()), (4, 1));
        assert_eq!(FencingToken { zxid: 4, handover: u32::MAX }.handed_over(), None);
    }
}
