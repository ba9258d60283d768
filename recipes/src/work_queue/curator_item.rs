//! The data of a node of Curator's queues: a version, then an item or several, then an end.
//!
//! Source: Curator's `ItemSerializer`. All numbers are big-endian.

/// `VERSION`.
const VERSION: u32 = 0x0001_0001;

/// `ITEM_OPCODE`: four bytes of length and the bytes of an item follow.
const ITEM: u8 = 1;

/// `EOF_OPCODE`: the end.
const END: u8 = 2;

/// The node of one item.
pub(super) fn encode(value: &[u8]) -> Vec<u8> {
    let length = u32::try_from(value.len()).unwrap_or_default().to_be_bytes();
    [&VERSION.to_be_bytes()[..], &[ITEM], &length, value, &[END]].concat()
}

/// The items of a node: mostly one. Bytes behind the end are ignored, as Curator does.
pub(super) fn decode(data: &[u8]) -> Result<Vec<Vec<u8>>, &'static str> {
    let (version, mut rest) = data.split_first_chunk().ok_or("no version of Curator's item serializer")?;
    if u32::from_be_bytes(*version) != VERSION {
        return Err("another version of Curator's item serializer");
    }
    let mut values = Vec::new();
    loop {
        let (opcode, after) = rest.split_first().ok_or("the data ends before its end mark")?;
        match *opcode {
            END => return Ok(values),
            ITEM => {}
            _ => return Err("an operation that Curator's item serializer does not have"),
        }
        let (length, after) = after.split_first_chunk().ok_or("the data ends in a length")?;
        let length = usize::try_from(i32::from_be_bytes(*length)).map_err(|_| "a negative length")?;
        let (value, after) = after.split_at_checked(length).ok_or("the data ends in an item")?;
        values.push(value.to_vec());
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_item_has_the_bytes_of_curators_serializer() {
        assert_eq!(encode(b"ab"), [0, 1, 0, 1, 1, 0, 0, 0, 2, b'a', b'b', 2]);
        assert_eq!(encode(b""), [0, 1, 0, 1, 1, 0, 0, 0, 0, 2]);
    }

    #[test]
    fn several_items_and_none_are_read() {
        let several = [0, 1, 0, 1, 1, 0, 0, 0, 1, b'a', 1, 0, 0, 0, 0, 1, 0, 0, 0, 2, b'b', b'c', 2];
        assert_eq!(decode(&several), Ok(vec![b"a".to_vec(), Vec::new(), b"bc".to_vec()]));
        assert_eq!(decode(&[0, 1, 0, 1, 2]), Ok(Vec::new()));
        assert_eq!(decode(&[0, 1, 0, 1, 2, 7]), Ok(Vec::new()));
    }

    #[test]
    fn other_data_is_refused() {
        let others: [&[u8]; 8] = [
            b"",
            b"order 7",
            &[0, 1, 0],
            &[0, 1, 0, 2, 2],
            &[0, 1, 0, 1],
            &[0, 1, 0, 1, 3],
            &[0, 1, 0, 1, 1, 0, 0, 0, 2, b'a'],
            &[0, 1, 0, 1, 1, 0xff, 0xff, 0xff, 0xff, 2],
        ];
        for data in others {
            assert!(decode(data).is_err(), "{data:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(data in proptest::collection::vec(any::<u8>(), 0..80)) {
            let data = [&VERSION.to_be_bytes()[..], &data].concat();
            let _ = decode(&data);
            prop_assert_eq!(decode(&encode(&data)), Ok(vec![data]));
        }
    }
}
