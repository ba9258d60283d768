//! Which recipe has a directory: pure.

use lockkeeper_core::{Kind, NodeName};

use crate::work_queue::{ITEMS, RECORDS, WORKERS, is_own_name};

/// What the names of a directory's children say about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// Contenders of a mutex, or of an election in the layout of `LeaderSelector`.
    Mutex,
    ReadWrite,
    Election,
    /// The directories of a semaphore.
    Semaphore,
    /// Contenders of a rate limiter.
    RateLimiter,
    /// No contender.
    Plain,
}

impl Layout {
    /// The first contender decides: every recipe refuses a directory with mixed kinds.
    pub(super) fn of(children: &[String]) -> Self {
        let kinds = children.iter().filter_map(|child| NodeName::parse(child)).map(|name| name.kind());
        for kind in kinds {
            match kind {
                Kind::LOCK => return Self::Mutex,
                Kind::READ | Kind::WRITE => return Self::ReadWrite,
                Kind::LATCH => return Self::Election,
                Kind::LIMIT => return Self::RateLimiter,
                _ => {}
            }
        }
        let has = |name: &str| children.iter().any(|child| child == name);
        let has_only = |names: [&str; 2]| children.iter().all(|child| names.contains(&child.as_str()));
        if has("leases") && has_only(["leases", "locks"]) { Self::Semaphore } else { Self::Plain }
    }

    /// Whether the child may have locks below it: the nodes of contenders have not, nor have the directories
    /// of a recipe.
    pub(super) fn is_searched(self, child: &str) -> bool {
        !is_contender_name(child) && !matches!(self, Self::Semaphore)
    }
}

/// Whether these are the children of a work queue, and those of its items.
pub(super) fn is_work_queue(children: &[String], items: &[String]) -> bool {
    let has = |name: &str| children.iter().any(|child| child == name);
    let is_empty_queue = || items.is_empty() && has(WORKERS);
    let has_items = || !items.is_empty() && items.iter().all(|item| is_own_name(item));
    may_be_work_queue(children) && (is_empty_queue() || has_items())
}

/// Whether these may be the children of a work queue.
pub(super) fn may_be_work_queue(children: &[String]) -> bool {
    [ITEMS, RECORDS].iter().all(|name| children.iter().any(|child| child == name))
}

/// Whether the name is that of a contender of a known kind.
fn is_contender_name(child: &str) -> bool {
    NodeName::parse(child).is_some_and(|name| name.kind() != Kind::OTHER)
}

/// Whether the name is that of a contender, and people may have given it to a directory: it has not the
/// unique part that clients put before the label.
pub(super) fn may_be_a_directory(child: &str) -> bool {
    let is_unique = NodeName::create_id(child).is_some()
        || child.get(..32).is_some_and(|part| part.bytes().all(|byte| byte.is_ascii_hexdigit()));
    is_contender_name(child) && !is_unique
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_the_children_tell_the_recipe() {
        for (children, layout) in [
            (&["_c_a-lock-0000000001", "config"][..], Layout::Mutex),
            (&["0f__lock__0000000001"], Layout::Mutex),
            (&["_c_a-__READ__0000000001"], Layout::ReadWrite),
            (&["_c_a-__WRIT__0000000001", "_c_a-__READ__0000000001"], Layout::ReadWrite),
            (&["_c_a-latch-0000000001"], Layout::Election),
            (&["locks", "leases"], Layout::Semaphore),
            (&["leases"], Layout::Semaphore),
            (&["_c_a-limit-0000000001"], Layout::RateLimiter),
            (&["locks"], Layout::Plain),
            (&["leases", "rooms"], Layout::Plain),
            (&["0f__party__0000000001"], Layout::Plain),
            (&[], Layout::Plain),
        ] {
            let names: Vec<String> = children.iter().map(|&name| name.to_owned()).collect();
            assert_eq!(Layout::of(&names), layout, "{children:?}");
        }
    }

    #[test]
    fn a_work_queue_has_items_alone_in_their_directory() {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let queue = names(&["items", "records", "workers"]);
        assert!(is_work_queue(&queue, &names(&["100-0000000001", "099-0000000002"])));
        assert!(is_work_queue(&queue, &[]));
        assert!(is_work_queue(&names(&["items", "records"]), &names(&["100-0000000001"])));
        assert!(!is_work_queue(&names(&["items", "records"]), &[]));
        assert!(!is_work_queue(&queue, &names(&["100-0000000001", "train-7"])));
        assert!(!is_work_queue(&names(&["items", "workers"]), &names(&["100-0000000001"])));
    }

    #[test]
    fn a_name_without_a_unique_part_may_be_that_of_a_directory() {
        for name in ["lock-1700000001", "eu-lock-1700000001", "_c_a-lock-0000000001"] {
            assert!(may_be_a_directory(name), "{name}");
        }
        for name in [
            "_c_6f9619ff-8b86-4d11-b42d-00cf4fc964ff-lock-0000000001",
            "0123456789abcdef0123456789abcdef__lock__0000000001",
            "rooms",
        ] {
            assert!(!may_be_a_directory(name), "{name}");
        }
    }

    #[test]
    fn contenders_and_the_directories_of_a_recipe_are_not_searched() {
        assert!(!Layout::Mutex.is_searched("_c_a-lock-0000000001"));
        assert!(Layout::Mutex.is_searched("below"));
        assert!(Layout::Plain.is_searched("0f__party__0000000001"));
        assert!(!Layout::Semaphore.is_searched("leases"));
    }
}
