//! What the names of a directory's children say of its lock: pure.
//!
//! The names alone tell the number of holders and of waiters, so a lock costs one list, however many contend
//! for it. It is for the eye: what acts on holders reads their nodes first.

use lockkeeper_core::{Kind, NodeName};

pub(super) use crate::nodes::is_contender;

/// The directory of the permits, below that of a semaphore.
const LEASES: &str = "leases/";

/// The contenders of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Queue {
    pub(super) recipe: &'static str,
    pub(super) holders: usize,
    pub(super) waiting: usize,
    /// The first holder, below the directory of the lock.
    pub(super) first: Option<String>,
    /// The highest sequence number.
    pub(super) newest: Option<i32>,
}

/// Whether these are the directories of a semaphore.
pub(super) fn is_semaphore(children: &[String]) -> bool {
    children.iter().any(|child| child == "leases")
        && children.iter().all(|child| child == "leases" || child == "locks")
}

/// Whether the name is that of a contender, and people may have given it to a directory: it has not the
/// unique part that clients put before the label.
pub(super) fn may_be_a_directory(child: &str) -> bool {
    let is_unique = NodeName::create_id(child).is_some()
        || child.get(..32).is_some_and(|part| part.bytes().all(|byte| byte.is_ascii_hexdigit()));
    is_contender(child) && !is_unique
}

impl Queue {
    /// `None` without a contender.
    pub(super) fn of(children: &[String]) -> Option<Self> {
        let names = in_order(children);
        let head = names.first()?;
        let (recipe, holders) = match head.kind() {
            Kind::READ | Kind::WRITE => {
                let readers = names.iter().take_while(|name| name.kind() == Kind::READ).count();
                ("rw lock", readers.max(1))
            }
            Kind::LATCH => ("election", 1),
            Kind::LIMIT => ("limiter", 0),
            _ => ("mutex", 1),
        };
        let first = (holders > 0).then(|| head.as_str().to_owned());
        Some(Self { recipe, holders, waiting: names.len() - holders, first, newest: newest(&names) })
    }

    /// The same of a semaphore with these children of its directories.
    pub(super) fn of_semaphore(leases: &[String], locks: &[String]) -> Option<Self> {
        let (leases, locks) = (in_order(leases), in_order(locks));
        if leases.is_empty() && locks.is_empty() {
            return None;
        }
        let first = leases.first().map(|lease| format!("{LEASES}{}", lease.as_str()));
        let newest = newest(&leases).max(newest(&locks));
        Some(Self { recipe: "semaphore", holders: leases.len(), waiting: locks.len(), first, newest })
    }
}

/// The contenders, in the order of their sequence numbers.
fn in_order(children: &[String]) -> Vec<NodeName> {
    let names = children.iter().filter_map(|child| NodeName::parse(child));
    let mut names: Vec<NodeName> = names.filter(|name| name.kind() != Kind::OTHER).collect();
    names.sort_by_key(NodeName::sequence);
    names
}

fn newest(names: &[NodeName]) -> Option<i32> {
    names.iter().map(NodeName::sequence).filter(|number| *number >= 0).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(children: &[&str]) -> Vec<String> {
        children.iter().map(|&child| child.to_owned()).collect()
    }

    #[test]
    fn the_names_tell_how_many_hold_and_wait() {
        for (children, recipe, holders, waiting, first) in [
            (
                &["_c_a-lock-0000000007", "_c_b-lock-0000000003", "config"][..],
                "mutex",
                1,
                1,
                Some("_c_b-lock-0000000003"),
            ),
            (
                &["_c_a-__READ__0000000001", "_c_b-__READ__0000000002"],
                "rw lock",
                2,
                0,
                Some("_c_a-__READ__0000000001"),
            ),
            (
                &["_c_a-__READ__0000000001", "_c_b-__WRIT__0000000002", "_c_c-__READ__0000000003"],
                "rw lock",
                1,
                2,
                Some("_c_a-__READ__0000000001"),
            ),
            (
                &["_c_b-__WRIT__0000000002", "_c_c-__READ__0000000003"],
                "rw lock",
                1,
                1,
                Some("_c_b-__WRIT__0000000002"),
            ),
            (
                &["_c_a-latch-0000000001", "_c_b-latch-0000000002"],
                "election",
                1,
                1,
                Some("_c_a-latch-0000000001"),
            ),
            (&["_c_a-limit-0000000001", "_c_b-limit-0000000002"], "limiter", 0, 2, None),
        ] {
            let queue = Queue::of(&names(children)).unwrap();
            assert_eq!(
                (queue.recipe, queue.holders, queue.waiting),
                (recipe, holders, waiting),
                "{children:?}"
            );
            assert_eq!(queue.first.as_deref(), first);
        }
        for children in [&[][..], &["config", "0f__party__0000000001"]] {
            assert_eq!(Queue::of(&names(children)), None);
        }
    }

    #[test]
    fn a_semaphore_is_told_by_its_directories_and_each_lease_holds() {
        assert!(is_semaphore(&names(&["locks", "leases"])) && is_semaphore(&names(&["leases"])));
        assert!(!is_semaphore(&names(&["leases", "rooms"])) && !is_semaphore(&names(&["locks"])));
        let leases = names(&["_c_a-lease-0000000004", "_c_b-lease-0000000005"]);
        let queue = Queue::of_semaphore(&leases, &names(&["_c_c-lock-0000000009"])).unwrap();
        assert_eq!((queue.holders, queue.waiting, queue.newest), (2, 1, Some(9)));
        assert_eq!(queue.first.as_deref(), Some("leases/_c_a-lease-0000000004"));
        assert_eq!(Queue::of_semaphore(&[], &[]), None);
    }
}
