use std::fmt::{self, Display, Formatter};

/// The directories of a queue.
pub(crate) const ITEMS: &str = "items";
pub(crate) const RECORDS: &str = "records";
pub(crate) const WORKERS: &str = "workers";
pub(crate) const FAILED: &str = "failed";

/// The greatest priority.
pub(super) const PRIORITY_MAX: u16 = 999;

/// The name of an item. The order of names is the order of work: first the lowest priority, and then the
/// lowest number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ItemName {
    priority: u16,
    number: u32,
}

impl ItemName {
    /// The part of a name before the number, which the server appends.
    pub(super) fn prefix(priority: u16) -> String {
        format!("{priority:03}-")
    }

    /// Reads the name of a child of the items' directory. `None` if it is no item of ours.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let (priority, number) = name.split_once('-')?;
        let is_number = |text: &str, digits| text.len() == digits && text.bytes().all(|b| b.is_ascii_digit());
        if !is_number(priority, 3) || !is_number(number, 10) {
            return None;
        }
        Some(Self { priority: priority.parse().ok()?, number: number.parse().ok()? })
    }
}

impl Display for ItemName {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:03}-{:010}", self.priority, self.number)
    }
}

/// Whether a child with this name is an item of ours.
pub(crate) fn is_item_name(name: &str) -> bool {
    ItemName::parse(name).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_names_is_the_order_of_work() {
        let name = |text: &str| ItemName::parse(text).unwrap();
        let mut names = ["100-0000000010", "099-0000000012", "100-0000000009"].map(name);
        names.sort();
        assert_eq!(
            names.map(|name| name.to_string()),
            ["099-0000000012", "100-0000000009", "100-0000000010"]
        );
        assert!(names.iter().all(|name| name.to_string().starts_with(&ItemName::prefix(name.priority))));
    }

    #[test]
    fn other_children_are_no_items() {
        for name in ["", "100-", "entry-100-0000000001", "100-000000001", "+10-0000000001", "100--000000001"]
        {
            assert_eq!(ItemName::parse(name), None, "{name}");
        }
    }
}
