use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

/// The directories of a queue.
pub(crate) const ITEMS: &str = "items";
pub(crate) const RECORDS: &str = "records";
pub(crate) const WORKERS: &str = "workers";
pub(crate) const FAILED: &str = "failed";

/// The greatest priority.
pub(super) const PRIORITY_MAX: u16 = 999;

/// The digits of the number that the server appends.
const NUMBER_DIGITS: usize = 10;

/// The name of an item. The order of these is the order of work.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ItemName {
    /// The item is not taken before this time, in milliseconds since 1970, if its name has one. Otherwise 0.
    due: i64,
    /// The text that the order is by, behind the time.
    order: Arc<str>,
    name: Arc<str>,
}

impl ItemName {
    /// A name whose order is that of its text.
    pub(super) fn of(name: &str) -> Self {
        let name: Arc<str> = name.into();
        Self { due: 0, order: Arc::clone(&name), name }
    }

    pub(super) fn due_at(self, due: i64) -> Self {
        Self { due, ..self }
    }

    pub(super) fn ordered_by(self, order: &str) -> Self {
        Self { order: order.into(), ..self }
    }

    pub(super) fn due(&self) -> i64 {
        self.due
    }

    pub(super) fn as_str(&self) -> &str {
        &self.name
    }
}

/// The part of a name before the number that the server has appended.
pub(super) fn prefix_of(name: &str) -> Option<&str> {
    let (prefix, number) = name.split_at_checked(name.len().checked_sub(NUMBER_DIGITS)?)?;
    number.bytes().all(|byte| byte.is_ascii_digit()).then_some(prefix)
}

impl Display for ItemName {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)
    }
}
