//! The writes to the registers, and whether the servers kept them.

use std::collections::BTreeMap;

use super::super::{Rule, lapses};
use super::{ALONE, READING, TestRun};
use crate::history::{Account, Entry, Token, What};

#[test]
fn who_is_valid_is_not_refused() {
    for (accepted, valid, broken) in [(true, true, false), (false, false, false), (false, true, true)] {
        let mut run = TestRun::default();
        let hold = run.claim(("c0.0", 0, "mutex", ALONE, 5, (10, 30)));
        run.record("c0.0", 0, 20, What::Stamped { hold, accepted, valid });
        assert_eq!(run.rules() == [Rule::Fence], broken, "{accepted} {valid}");
    }
}

/// A token that the fenced register of `rw` took.
fn entry(token: impl Into<Token>, reading: bool) -> Entry {
    Entry { at: 1, lock: "rw".to_owned(), token: token.into(), reading, accepted: true }
}

#[test]
fn a_fenced_register_never_takes_an_older_token() {
    for (entries, broken) in [
        (vec![entry(5, false), entry(7, false), entry(7, false), entry(9, true), entry(8, false)], false),
        (vec![entry(7, false), entry(5, false)], true),
        (vec![entry(7, false), entry(5, true)], true),
        (vec![entry((5, 1), false), entry((5, 2), false), entry(6, false)], false),
        (vec![entry((5, 1), false), entry(5, false)], true),
    ] {
        let mut run = TestRun::of(&[("c0.0", 3, "rw", READING, 5, (10, 30))]);
        run.history.account.stamps = entries;
        assert_eq!(run.rules() == [Rule::Fence], broken);
    }
}

/// Writes of a register, one after the other: token and version of each, and the final value.
fn writes<T: Copy + Into<Token>>(writes: &[(T, i32)], (last, in_the_end): (T, i32)) -> TestRun {
    let mut run = TestRun::default();
    let mut from = 10;
    for (token, version) in writes {
        let hold = run.claim(("c0.0", 0, "mutex", ALONE, *token, (from, from + 5)));
        run.record("c0.0", 0, from + 1, What::Committed { hold, version: *version });
        from += 5;
    }
    let registers = BTreeMap::from([("mutex".to_owned(), (last.into(), in_the_end))]);
    run.history.account = Account { registers, ..Account::default() };
    run
}

fn written<T: Copy + Into<Token>>(versions: &[(T, i32)], last: (T, i32)) -> Vec<Rule> {
    writes(versions, last).rules()
}

#[test]
fn a_loss_of_committed_data_is_reported() {
    let lapsed = |versions: &[(u64, i32)], last| !lapses(&writes(versions, last).history).is_empty();
    assert!(!lapsed(&[(5, 1), (7, 2), (8, 4)], (8, 4)));
    assert!(!lapsed(&[(7, 1), (5, 2)], (5, 2)), "that is a fault of locks");
    assert!(lapsed(&[(5, 1), (7, 2), (8, 2)], (8, 2)), "one version twice");
    assert!(lapsed(&[(5, 3), (7, 2)], (7, 3)), "an older version later");
    assert!(lapsed(&[(5, 1), (7, 2)], (5, 1)), "the last write is lost");
    let mut run = TestRun::default();
    run.history.account.disagreements = vec!["a node is on s0 and not on s1".to_owned()];
    assert_eq!(lapses(&run.history).len(), 1);
}

#[test]
fn concurrent_writes_may_be_reported_in_any_order() {
    let mut run = TestRun::default();
    let slow = run.claim(("c0.0", 0, "mutex", ALONE, 5, (10, 12)));
    let quick = run.claim(("c1.0", 0, "mutex", ALONE, 7, (13, 20)));
    run.record("c1.0", 0, 15, What::Committed { hold: quick, version: 2 });
    run.record("c0.0", 0, 16, What::Committed { hold: slow, version: 1 });
    assert!(lapses(&run.history).is_empty());
}

#[test]
fn transactions_are_committed_in_the_order_of_their_tokens() {
    assert_eq!(written(&[(5, 1), (7, 2), (8, 4)], (8, 4)), []);
    assert_eq!(written(&[(5, 1), (7, 2)], (9, 3)), [], "a write without an answer");
    assert_eq!(written(&[(5, 2), (7, 1)], (5, 2)), [Rule::Transaction], "an older one after a newer one");
    assert_eq!(written(&[(5, 1), (7, 1)], (7, 1)), [Rule::Transaction], "one version twice");
    assert_eq!(written(&[(5, 1), (7, 2)], (5, 3)), [Rule::Transaction], "an older one in the end");
    assert_eq!(written(&[(5, 1), (7, 2)], (8, 2)), [Rule::Transaction], "another write in its place");
    assert_eq!(written(&[(5, 1), (7, 2)], (7, 1)), [Rule::Transaction], "a write is lost");
    assert_eq!(written(&[((5, 8), 1), ((5, 9), 2), ((7, 0), 3)], ((7, 0), 3)), [], "handed over");
    assert_eq!(written(&[((5, 8), 2), ((5, 9), 1)], ((5, 8), 2)), [Rule::Transaction], "in this order");
}
