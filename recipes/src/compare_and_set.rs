/// The result of a conditional write: of [`Counter::compare_and_set`](crate::Counter::compare_and_set) and
/// [`SharedValue::compare_and_set`](crate::SharedValue::compare_and_set).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the value may not be set"]
pub enum CompareAndSet<T> {
    /// The condition was true, and this was set.
    Set(T),
    /// The condition was false, and nothing was changed. This is the present value.
    Differs(T),
}

impl<T> CompareAndSet<T> {
    /// Whether the value was set.
    #[must_use]
    pub fn is_set(&self) -> bool {
        matches!(self, Self::Set(_))
    }

    /// The value after the call.
    #[must_use]
    pub fn into_current(self) -> T {
        match self {
            Self::Set(value) | Self::Differs(value) => value,
        }
    }
}
