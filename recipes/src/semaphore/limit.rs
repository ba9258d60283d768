use std::sync::Arc;

use lockkeeper_core::Zxid;
use lockkeeper_core::{ConfigError, Error, Read, Stat, ZnodePath};
use parking_lot::Mutex;

use super::encoding::{check, decode, encode};
use super::shared_limit::SharedLimit;

/// The number of permits.
#[derive(Clone, Debug)]
pub(super) enum PermitLimit {
    Fixed(Fixed),
    Shared(SharedLimit),
}

impl PermitLimit {
    pub(super) fn fixed(permits: u32) -> Result<Self, Error> {
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

    /// The read that shows the limit. A fixed limit is recorded in the data of `leases`.
    pub(super) fn limit_read(&self, leases: &ZnodePath) -> Read {
        match self {
            Self::Shared(shared) => Read::Data(shared.path().clone()),
            // Only the head of the queue writes it.
            Self::Fixed(_) => Read::DataOnce(leases.clone()),
        }
    }

    /// Whether an acquire must read it: a shared limit always, a recorded limit only until it was read once.
    pub(super) fn is_to_be_read(&self) -> bool {
        match self {
            Self::Shared(_) => true,
            Self::Fixed(fixed) => fixed.seen.lock().is_none(),
        }
    }
}

/// A limit that every user of the semaphore gives. It is recorded in the data of the leases' directory, to be
/// compared.
#[derive(Clone, Debug)]
pub(super) struct Fixed {
    permits: u32,
    /// The record that was read last. A directory that was created or written since then has another version.
    seen: Arc<Mutex<Option<Record>>>,
}

/// The limit that one version of the directory records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Record {
    version: (Zxid, i32),
    limit: Option<u32>,
}

impl Fixed {
    pub(super) fn permits(&self) -> u32 {
        self.permits
    }

    /// The limit that the directory of this stat records. `None` if it is not known yet.
    pub(super) fn recorded(&self, directory: &Stat) -> Option<Option<u32>> {
        if directory.data_length == 0 {
            return Some(None);
        }
        let seen = *self.seen.lock();
        seen.filter(|record| record.version == (directory.czxid, directory.version))
            .map(|record| record.limit)
    }

    /// The bytes of the record.
    pub(super) fn record(&self) -> Vec<u8> {
        encode(self.permits)
    }

    pub(super) fn saw(&self, data: &[u8], directory: &Stat) {
        let version = (directory.czxid, directory.version);
        *self.seen.lock() = Some(Record { version, limit: decode(data) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_cannot_be_counted_is_refused() {
        assert!(PermitLimit::fixed(0).is_err());
        assert!(PermitLimit::fixed(1 << 31).is_err());
        assert!(PermitLimit::fixed((1 << 31) - 1).is_ok());
    }

    #[test]
    fn what_was_read_of_another_version_counts_for_nothing() {
        let PermitLimit::Fixed(fixed) = PermitLimit::fixed(3).unwrap() else { panic!("fixed") };
        let stat = Stat {
            czxid: Zxid::new(7),
            mzxid: Zxid::new(7),
            pzxid: Zxid::new(7),
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
        assert_eq!(fixed.recorded(&Stat { czxid: Zxid::new(8), ..stat }), None);
        assert_eq!(fixed.recorded(&Stat { version: 2, data_length: 0, ..stat }), Some(None));
    }
}
