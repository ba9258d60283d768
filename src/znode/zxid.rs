use std::fmt::{self, Debug, Display, Formatter};

/// The id of a transaction of the servers: each write has one, and a later write has a greater one.
///
/// It is shown as ZooKeeper's logs write it, such as `0x1000000f2`.
///
/// # Examples
///
/// ```
/// use lockkeeper_core::Zxid;
///
/// let zxid = Zxid::new(0x3_0000_00f2);
/// assert_eq!((zxid.epoch(), zxid.counter()), (3, 0xf2));
/// assert_eq!(zxid.to_string(), "0x3000000f2");
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Zxid(
    /// The servers count through the sign: the epoch after 2³¹ − 1 is greater than that one.
    u64,
);

impl Zxid {
    /// Less than the zxid of any write: where no write has happened.
    pub const ZERO: Self = Self(0);

    /// The zxid with this number, as ZooKeeper's own clients have it.
    #[must_use]
    pub const fn new(number: i64) -> Self {
        Self(u64::from_ne_bytes(number.to_ne_bytes()))
    }

    /// The number, as ZooKeeper's own clients have it.
    #[must_use]
    pub const fn get(self) -> i64 {
        i64::from_ne_bytes(self.0.to_ne_bytes())
    }

    /// The number of the leader that the write went through: the upper 32 bits. Each leader has a greater one
    /// than the leader before.
    #[must_use]
    pub const fn epoch(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The number of the write among those of its leader: the lower 32 bits.
    #[must_use]
    pub const fn counter(self) -> u32 {
        self.0 as u32
    }

    pub(crate) const fn as_u64(self) -> u64 {
        self.0
    }
}

impl Display for Zxid {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:#x}", self.0)
    }
}

impl Debug for Zxid {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "Zxid({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zxids_are_compared_without_a_sign() {
        let all = [0, 1, 0xffff_ffff, 0x1_0000_0000, i64::MAX, i64::MIN, -1].map(Zxid::new);
        assert!(all.is_sorted());
        assert!(all.iter().all(|zxid| Zxid::new(zxid.get()) == *zxid));
        assert_eq!((Zxid::new(-1).epoch(), Zxid::new(i64::MIN).counter()), (u32::MAX, 0));
    }

    #[test]
    fn a_zxid_is_shown_as_in_the_logs_of_the_servers() {
        assert_eq!(
            format!("{} {:?}", Zxid::new(0x1_0000_00f2), Zxid::new(-1)),
            "0x1000000f2 Zxid(0xffffffffffffffff)"
        );
    }
}
