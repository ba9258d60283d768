/// Which nodes a view follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ViewScope {
    /// The root alone.
    Node,
    /// The root and its children.
    Children,
    /// The root and everything below.
    Tree,
}

impl ViewScope {
    /// The number of levels below the root; `None` without a limit.
    pub(super) fn levels(self) -> Option<usize> {
        match self {
            Self::Node => Some(0),
            Self::Children => Some(1),
            Self::Tree => None,
        }
    }
}
