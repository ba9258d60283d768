/// A node that is being read.
pub(super) struct Visit {
    pub(super) cause: Cause,
    /// An event arrived meanwhile: another visit follows.
    pub(super) again: Option<Cause>,
}

/// Why a node is read.
#[derive(Clone, Copy)]
pub(super) struct Cause {
    pub(super) number: u64,
    /// Everything below is compared as well.
    pub(super) is_deep: bool,
}

impl Cause {
    pub(super) fn and(self, other: Self) -> Self {
        Self { number: self.number.min(other.number), is_deep: self.is_deep || other.is_deep }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_causes_of_a_visit_the_earlier_number_counts_and_that_one_is_deep() {
        let cause = |number, is_deep| Cause { number, is_deep };
        for (one, other, both) in [
            (cause(1, true), cause(2, false), (1, true)),
            (cause(2, false), cause(1, true), (1, true)),
            (cause(1, false), cause(2, false), (1, false)),
        ] {
            let and = one.and(other);
            assert_eq!((and.number, and.is_deep), both);
        }
    }
}
