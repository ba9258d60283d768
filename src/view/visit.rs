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
