/// The version that a node must have for a write of it to be applied.
///
/// A number is that of a [`Stat`](crate::Stat), and becomes a `Version` by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Version {
    /// Any version.
    Any,
    /// This version.
    Exactly(i32),
}

impl Version {
    /// As the servers expect it: `None` for any version. They encode that as −1, so no write can name the
    /// version −1, which a node has after 2³² − 1 writes. Other negative versions are those of nodes whose
    /// version has overflowed.
    pub(crate) fn on_wire(self) -> Option<i32> {
        match self {
            Self::Any | Self::Exactly(-1) => None,
            Self::Exactly(version) => Some(version),
        }
    }
}

impl From<i32> for Version {
    /// The version with this number. −1 is any version, as in ZooKeeper's own clients.
    fn from(version: i32) -> Self {
        match version {
            -1 => Self::Any,
            version => Self::Exactly(version),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_that_version_and_minus_one_is_any() {
        for version in [0, 7, i32::MAX, i32::MIN, -5] {
            assert_eq!(Version::from(version), Version::Exactly(version));
            assert_eq!(Version::from(version).on_wire(), Some(version));
        }
        assert_eq!(Version::from(-1), Version::Any);
        assert_eq!(Version::Any.on_wire(), None);
        assert_eq!(Version::Exactly(-1).on_wire(), None, "the servers cannot tell it from any");
    }
}
