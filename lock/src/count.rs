/// The length of a collection, as the API counts things: in `u32`. A length beyond that range is its maximum.
/// For the crates of the engines.
#[must_use]
pub fn count_of(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_beyond_the_range_is_the_greatest_count() {
        assert_eq!([0, 7, u32::MAX as usize].map(count_of), [0, 7, u32::MAX]);
        assert_eq!(count_of(usize::MAX), u32::MAX);
    }
}
