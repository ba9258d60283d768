use std::sync::Arc;

use lockkeeper_core::{ConfigError, Error, Read, Stat, ZnodePath};
use parking_lot::Mutex;

use super::shared_limit::SharedLimit;

/// How many permits there are.
#[derive(Clone, Debug)]
pub(super) enum Limit {
    Fixed(Fixed),
    Shared(SharedLimit),
}

impl Limit {
    pub(super) fn fixed(permits: usize) -> Result<Self, Error> {
        check(permits)?;
        if permits == 0 {
            return Err(Error::Config(ConfigError::Setting {
                name: "permits",
                value: "0".to_owned(),
                advice: "have one or more",
            }));
        }
        Ok(Self::Fixed(Fixed { permits, seen: Arc::default() }))
    }

    /// Where it says how many there are; a fixed limit is recorded with the `leases`.
    pub(super) fn limit_read(&self, leases: &ZnodePath) -> Read {
        match self {
            Self::Shared(shared) => Read::Data(shared.path().clone()),
            // Only the head of the line writes it.
            Self::Fixed(_) => Read::DataOnce(leases.clone()),
        }
    }

    /// Whether it must be read beside the leases: a shared limit always, a record only until it was seen once.
    pub(super) fn is_to_be_read(&self) -> bool {
        match self {
            Self::Shared(_) => true,
            Self::Fixed(fixed) => fixed.seen.lock().is_none(),
        }
    }
}

/// A limit that everyone brings along, recorded in the data of the leases' directory so that it can be compared.
#[derive(Clone, Debug)]
pub(super) struct Fixed {
    permits: usize,
    /// What was read last. A directory that is made anew, or written, is another version.
    seen: Arc<Mutex<Option<Record>>>,
}

/// What one version of the directory says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Record {
    version: (i64, i32),
    limit: Option<usize>,
}

impl Fixed {
    pub(super) fn permits(&self) -> usize {
        self.permits
    }

    /// What the directory of this stat says; `None` when that is not known yet.
    pub(super) fn recorded(&self, directory: &Stat) -> Option<Option<usize>> {
        if directory.data_length == 0 {
            return Some(None);
        }
        let seen = *self.seen.lock();
        seen.filter(|record| record.version == (directory.czxid, directory.version))
            .map(|record| record.limit)
    }

    /// The bytes by which it is recorded.
    pub(super) fn record(&self) -> Vec<u8> {
        encode(self.permits)
    }

    /// It was written: the next look reads it along.
    pub(super) fn forget(&self) {
        *self.seen.lock() = None;
    }

    pub(super) fn saw(&self, data: &[u8], directory: &Stat) {
        let version = (directory.czxid, directory.version);
        *self.seen.lock() = Some(Record { version, limit: decode(data) });
    }
}

/// Refuses what four bytes cannot say.
pub(super) fn check(permits: usize) -> Result<(), Error> {
    match i32::try_from(permits) {
        Ok(_) => Ok(()),
        Err(_) => Err(Error::Config(ConfigError::Setting {
            name: "permits",
            value: permits.to_string(),
            advice: "have at most 2147483647, which is what Curator can count",
        })),
    }
}

/// As Curator's `SharedCount` writes it.
pub(super) fn encode(permits: usize) -> Vec<u8> {
    i32::try_from(permits).unwrap_or(i32::MAX).to_be_bytes().to_vec()
}

pub(super) fn decode(data: &[u8]) -> Option<usize> {
    let bytes: [u8; 4] = data.try_into().ok()?;
    usize::try_from(i32::from_be_bytes(bytes)).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_limit_is_written_as_curators_shared_count_writes_it() {
        for (permits, bytes) in [
            (0, [0, 0, 0, 0]),
            (1, [0, 0, 0, 1]),
            (258, [0, 0, 1, 2]),
            (0x7fff_ffff, [0x7f, 0xff, 0xff, 0xff]),
        ] {
            assert_eq!(encode(permits), bytes);
            assert_eq!(decode(&bytes), Some(permits));
        }
        for other in [&[][..], b"4", &[0, 0, 0, 0, 4], &[0xff, 0xff, 0xff, 0xff]] {
            assert_eq!(decode(other), None, "{other:?}");
        }
    }

    proptest! {
        #[test]
        fn no_data_panics_and_what_is_a_limit_is_written_the_same(data in prop::collection::vec(any::<u8>(), 0..7)) {
            if let Some(permits) = decode(&data) {
                prop_assert_eq!(encode(permits), data);
            }
        }
    }

    #[test]
    fn a_limit_that_cannot_be_counted_is_refused() {
        assert!(Limit::fixed(0).is_err());
        assert!(Limit::fixed(1 << 31).is_err());
        assert!(Limit::fixed((1 << 31) - 1).is_ok());
    }

    #[test]
    fn what_was_read_of_another_version_counts_for_nothing() {
        let Limit::Fixed(fixed) = Limit::fixed(3).unwrap() else { panic!("fixed") };
        let stat = Stat {
            czxid: 7,
            mzxid: 7,
            ctime: 0,
            mtime: 0,
            version: 1,
            child_version: 0,
            ephemeral_owner: 0,
            data_length: 4,
            children: 0,
        };
        assert_eq!(fixed.recorded(&stat), None);
        fixed.saw(&encode(5), &stat);
        assert_eq!(fixed.recorded(&stat), Some(Some(5)));
        assert_eq!(fixed.recorded(&Stat { version: 2, ..stat }), None);
        assert_eq!(fixed.recorded(&Stat { czxid: 8, ..stat }), None);
        assert_eq!(fixed.recorded(&Stat { version: 2, data_length: 0, ..stat }), Some(None));
    }
}
