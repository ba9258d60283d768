/// Whether a view follows a node, and what is below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Follow {
    /// The node, and its children as far as the filter follows each of them.
    Tree,
    /// The node, and nothing below it: its children are not listed.
    Node,
    /// Neither the node nor anything below it.
    Nothing,
}

impl From<bool> for Follow {
    /// [`Tree`](Self::Tree) for `true`, and [`Nothing`](Self::Nothing) for `false`.
    fn from(is_followed: bool) -> Self {
        if is_followed { Self::Tree } else { Self::Nothing }
    }
}
