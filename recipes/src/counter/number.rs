use std::fmt::{Debug, Display};

/// A number that a [`Counter`](super::Counter) counts: `i64` or `i32`.
pub trait CounterNumber:
    sealed::Bytes + Into<i64> + Copy + Ord + Debug + Display + Send + Sync + Unpin + 'static
{
    /// Zero: the value of a missing node, and of a node without data.
    const ZERO: Self;
    /// One.
    const ONE: Self;

    /// The sum; `None` if it is out of range.
    #[must_use]
    fn checked_add(self, other: Self) -> Option<Self>;
}

pub(super) mod sealed {
    /// The bytes of a number in a node: big-endian, as those of Curator.
    pub trait Bytes: Sized {
        /// The number of bytes.
        const COUNT: usize;
        fn encode(self) -> Vec<u8>;
        /// `None` if there are more bytes or fewer.
        fn decode(bytes: &[u8]) -> Option<Self>;
    }
}

macro_rules! counter_number {
    ($number:ty) => {
        impl CounterNumber for $number {
            const ZERO: Self = 0;
            const ONE: Self = 1;

            fn checked_add(self, other: Self) -> Option<Self> {
                self.checked_add(other)
            }
        }

        impl sealed::Bytes for $number {
            const COUNT: usize = size_of::<Self>();

            fn encode(self) -> Vec<u8> {
                self.to_be_bytes().to_vec()
            }

            fn decode(bytes: &[u8]) -> Option<Self> {
                bytes.try_into().map(Self::from_be_bytes).ok()
            }
        }
    };
}

counter_number!(i64);
counter_number!(i32);

/// The number in the data of a node. `Err` has the length of data that is none.
pub(super) fn number_in<N: CounterNumber>(data: Option<&[u8]>) -> Result<N, usize> {
    match data {
        None | Some([]) => Ok(N::ZERO),
        Some(bytes) => N::decode(bytes).ok_or(bytes.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::sealed::Bytes;
    use super::*;

    #[test]
    fn the_bytes_are_those_of_curator_and_no_data_is_zero() {
        assert_eq!(Bytes::encode(258_i64), [0, 0, 0, 0, 0, 0, 1, 2]);
        assert_eq!(Bytes::encode(-2_i32), [255, 255, 255, 254]);
        assert_eq!(number_in::<i64>(Some(&[255; 8])), Ok(-1));
        assert_eq!((number_in::<i32>(None), number_in::<i64>(Some(b""))), (Ok(0), Ok(0)));
        assert_eq!((number_in::<i64>(Some(b"0123")), number_in::<i32>(Some(b"12345"))), (Err(4), Err(5)));
    }
}
