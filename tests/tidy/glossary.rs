//! Each public type of the core is a term of the field, or `docs/glossary.md` defines it.

use std::collections::BTreeSet;

use super::read;
use super::rust::named;

/// Types that the documentation of ZooKeeper, of Curator or of Rust explains, and plain English compounds.
const FIELD_TERMS: &[&str] = &[
    "Acl",
    "AgeClock",
    "BootInstant",
    "Changes",
    "ConnectString",
    "ConnectionManager",
    "ConnectionManagerBuilder",
    "ConnectionPool",
    "CreateMode",
    "Deadline",
    "DecodeFailure",
    "ErrorKind",
    "Health",
    "HoldEvent",
    "HoldEvents",
    "IntoPath",
    "LossReason",
    "Lost",
    "NodeName",
    "OnDeletion",
    "Operation",
    "Permissions",
    "Phase",
    "Refusal",
    "RendezvousInfo",
    "RetryPolicy",
    "Role",
    "Stat",
    "State",
    "Tls",
    "Transition",
    "Transitions",
    "TxnResult",
    "ViewChange",
    "ViewChanges",
    "ViewNode",
];

#[test]
fn the_glossary_defines_every_public_type_of_the_core() {
    let glossary = read("docs/glossary.md");
    let defined: BTreeSet<&str> =
        glossary.split('`').skip(1).step_by(2).filter_map(|quoted| quoted.split("::").next()).collect();
    let is_type = |name: &String| name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase);
    let public: Vec<String> = named(&read("src/lib.rs"))
        .into_iter()
        .filter(|named| named.path[0] == "self" || named.path[0] == "lockkeeper_lock")
        .filter_map(|named| named.imported_as.filter(is_type))
        .collect();
    assert!(public.len() > 80, "only {} types were found", public.len());
    // An error is named after the operation that fails.
    let is_known = |name: &&String| {
        defined.contains(name.as_str()) || FIELD_TERMS.contains(&name.as_str()) || name.ends_with("Error")
    };
    let unknown: Vec<&String> = public.iter().filter(|name| !is_known(name)).collect();
    assert!(unknown.is_empty(), "docs/glossary.md defines none of these: {unknown:#?}");
    let is_gone = |term: &&&str| !public.iter().any(|name| name == *term) || defined.contains(*term);
    let gone: Vec<_> = FIELD_TERMS.iter().filter(is_gone).collect();
    assert!(gone.is_empty(), "these are no public types, or the glossary has them: {gone:#?}");
    assert!(FIELD_TERMS.is_sorted(), "the list is not in order");
}
