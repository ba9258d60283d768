//! What the local queue has of the names of nodes.

pub(crate) mod name {
    /// The kind of a mutex. Contenders of several kinds have tests in the core.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub(crate) struct Kind;

    impl Kind {
        pub(crate) const LOCK: Self = Self;
    }
}
