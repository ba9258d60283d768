use super::encoding::{check, decode, encode};

/// A limit is the data of a shared count, but it is not negative.
pub(crate) fn limits(data: &[u8]) {
    if let Some(permits) = decode(data) {
        assert_eq!(encode(permits), data);
        assert!(check(permits).is_ok());
    }
}
