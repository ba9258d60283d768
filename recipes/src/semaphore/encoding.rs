//! The bytes of a limit: pure.

use lockkeeper_core::{ConfigError, Error};

/// Refuses a limit that four bytes cannot hold.
pub(super) fn check(permits: u32) -> Result<(), Error> {
    match i32::try_from(permits) {
        Ok(_) => Ok(()),
        Err(_) => Err(Error::Config(ConfigError::Setting {
            name: "permits",
            value: permits.to_string(),
            advice: "have at most 2147483647, which is what Curator can count",
        })),
    }
}

/// The bytes of a limit, as Curator's `SharedCount` writes them.
pub(super) fn encode(permits: u32) -> Vec<u8> {
    i32::try_from(permits).unwrap_or(i32::MAX).to_be_bytes().to_vec()
}

pub(super) fn decode(data: &[u8]) -> Option<u32> {
    let bytes: [u8; 4] = data.try_into().ok()?;
    u32::try_from(i32::from_be_bytes(bytes)).ok()
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
        fn no_data_panics_and_what_is_a_limit_is_written_the_same(
            data in prop::collection::vec(any::<u8>(), 0..7),
        ) {
            if let Some(permits) = decode(&data) {
                prop_assert_eq!(encode(permits), data);
            }
        }
    }
}
