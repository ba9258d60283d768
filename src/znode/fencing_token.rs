use std::fmt::{self, Display, Formatter};

/// The fencing token of a grant. Later grants of a lock have greater tokens.
///
/// Pass it to every resource that the lock protects, and let the resource refuse a token that is smaller than
/// one it has seen. Only that stops a paused process from writing after another contender was granted its
/// lock; nothing that a client does can.
///
/// It begins with the transaction id (zxid) of the create of the holder's node. These ids have one order in
/// the whole ensemble, even if a lock's directory is removed and created again. In an ensemble that is
/// restored from a backup, or set up anew, the ids start again, and so do the tokens: raise the resource's
/// mark by hand then.
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

    /// The transaction id as a number, for resources that store one integer. Grants that share one node
    /// within a process have the same id: [`handover`](Self::handover) tells them apart.
    #[must_use]
    pub fn as_u64(self) -> u64 {
        self.zxid
    }

    /// How often the node had been handed over within its process before this grant; 0 unless the lock keeps
    /// its node. It decides between tokens with equal [transaction ids](Self::as_u64).
    #[must_use]
    pub fn handover(self) -> u32 {
        self.handover
    }

    /// The token of the next grant on the same node; `None` after the last one.
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
