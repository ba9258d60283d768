//! The names that other libraries write, and names that are none.

use proptest::prelude::*;

use super::*;

const UUID: &str = "_c_6f9619ff-8b86-4d11-b42d-00cf4fc964ff-";

#[test]
fn the_names_of_all_peers_are_read() {
    for (name, kind, sequence) in [
        ("_c_6f9619ff-8b86-4d11-b42d-00cf4fc964ff-lock-0000000007", Kind::LOCK, 7),
        ("_c_6f9619ff8b864d11b42d00cf4fc964ff-lock-0000000007", Kind::LOCK, 7),
        ("6f9619ff8b864d11b42d00cf4fc964ff__lock__0000000012", Kind::LOCK, 12),
        ("6f9619ff8b864d11b42d00cf4fc964ff__rlock__0000000012", Kind::READ, 12),
        ("_c_6f9619ff-8b86-4d11-b42d-00cf4fc964ff-__WRIT__0000000003", Kind::WRITE, 3),
        ("_c_6f9619ff-8b86-4d11-b42d-00cf4fc964ff-__READ__-2147483648", Kind::READ, i32::MIN),
        ("_c_6f9619ff-8b86-4d11-b42d-00cf4fc964ff-lock--000000001", Kind::LOCK, -1),
        ("lock--1999999999", Kind::LOCK, -1_999_999_999),
        ("lock-2147483647", Kind::LOCK, i32::MAX),
        ("x-144115188075855872-0000000004", Kind::OTHER, 4),
        ("_c_6f9619ff-8b86-4d11-b42d-00cf4fc964ff-latch-0000000004", Kind::LATCH, 4),
        ("gate-0000000004", Kind::OTHER, 4),
    ] {
        let parsed = NodeName::parse(name).unwrap();
        assert_eq!((parsed.kind(), parsed.sequence()), (kind, sequence), "{name}");
        assert_eq!(parsed.as_str(), name);
    }
}

#[test]
fn names_without_a_number_are_nobody() {
    for name in ["", "config", "lock-", "lock-12", "lock-000000012", "é", "_c_1-lock-٣٣٣٣٣٣٣٣٣٣"] {
        assert_eq!(NodeName::parse(name), None, "{name}");
    }
}

#[test]
fn a_lost_create_is_found_by_its_own_protection_only() {
    let (mine, other) = (CreateId::new(Uuid::new_v4()), CreateId::new(Uuid::new_v4()));
    let children = vec![
        format!("{}0000000000", other.name(Label::LOCK)),
        format!("{}0000000001", mine.name(Label::LOCK)),
    ];
    assert_eq!(mine.find(&children), children.get(1));
    assert_eq!(CreateId::new(Uuid::new_v4()).find(&children), None);
}

#[test]
fn a_label_that_could_be_misread_is_refused() {
    let ambiguous = |label, other| LabelError::Ambiguous { label, other };
    for (text, refused) in [
        ("", LabelError::Empty),
        ("--", LabelError::Empty),
        ("a/b", LabelError::Character { label: "a/b" }),
        ("turn ", LabelError::Character { label: "turn " }),
        ("türn-", LabelError::Character { label: "türn-" }),
        ("turn2", LabelError::Digit { label: "turn2" }),
        ("turn2-", LabelError::Digit { label: "turn2-" }),
        ("lock", ambiguous("lock", "lock-")),
        ("lock-", ambiguous("lock-", "lock-")),
        ("clock-", ambiguous("clock-", "lock-")),
        ("ck--", ambiguous("ck--", "lock-")),
        ("my__lock__", ambiguous("my__lock__", "__lock__")),
        ("READ__", ambiguous("READ__", "__READ__")),
        ("_", ambiguous("_", "__rlock__")),
    ] {
        assert_eq!(Label::new(text), Err(refused), "{text}");
    }
    let long = "x".repeat(LABEL_BYTES_MAX + 1).leak();
    assert_eq!(Label::new(long), Err(LabelError::TooLong { label: long }));
    for text in ["turn-", "gate-", "start-", "x2a", "my.turn-", "Lock-"] {
        assert_eq!(Label::new(text).map(Label::as_str), Ok(text));
    }
}

#[test]
fn a_node_of_an_own_label_is_another_kind_where_the_label_is_not_known() {
    let turn = Label::new("turn-").unwrap();
    let name = format!("{UUID}turn-0000000004");
    assert_eq!(NodeName::parse(&name).unwrap().kind(), Kind::OTHER);
    assert_eq!(NodeName::parse_with(&name, &[turn]).unwrap().kind(), turn.kind());
    let lock = NodeName::parse_with(&format!("{UUID}lock-0000000004"), &[turn]).unwrap();
    assert_eq!(lock.kind(), Kind::LOCK);
    assert_eq!((turn.kind().metric_name(), Kind::OTHER.metric_name()), ("turn", "other"));
}

#[test]
fn of_two_labels_in_one_directory_neither_ends_with_the_other() {
    let label = |text| Label::new(text).unwrap();
    for (one, other) in [("turn-", "return-"), ("turn", "turn-"), ("turn--", "turn-")] {
        assert!(label(one).check_beside(label(other)).is_err(), "{one} {other}");
        assert!(label(other).check_beside(label(one)).is_err(), "{one} {other}");
    }
    assert!(label("turn-").check_beside(label("turn-")).is_ok());
    assert!(label("turn-").check_beside(label("gate-")).is_ok());
}

proptest! {
    #[test]
    fn the_number_behind_an_own_label_is_read_back(
        sequence: i32, text in "[a-z0-9_.-]{1,8}", other in "[a-z-]{1,4}",
    ) {
        let (Ok(label), Ok(other)) = (Label::new(text.leak()), Label::new(other.leak())) else {
            return Ok(());
        };
        prop_assume!(label.check_beside(other).is_ok());
        let number = if sequence < 0 {
            format!("-{:09}", sequence.unsigned_abs())
        } else {
            format!("{sequence:010}")
        };
        let name = format!("{UUID}{}{number}", label.as_str());
        let parsed = NodeName::parse_with(&name, &[other, label]).unwrap();
        prop_assert_eq!((parsed.kind(), parsed.sequence()), (label.kind(), sequence));
    }

    #[test]
    fn what_the_server_writes_is_read_back(sequence: i32, label in prop::sample::select(vec![
        Label::LOCK, Label::LEASE, Label::READ, Label::WRITE, Label::LATCH, Label::LIMIT,
    ])) {
        // Java's %010d counts the sign as one of the ten places.
        let number = if sequence < 0 {
            format!("-{:09}", sequence.unsigned_abs())
        } else {
            format!("{sequence:010}")
        };
        let name = format!("{UUID}{}{number}", label.as_str());
        prop_assert_eq!(NodeName::parse(&name).unwrap().sequence(), sequence);
    }

    #[test]
    fn any_text_is_read_without_a_panic(name in "\\PC*") {
        let _ = NodeName::parse(&name);
    }
}
