//! What the registers saw, and whether the servers kept it.

use std::collections::BTreeMap;

use super::super::{Rule, lapses};
use super::{ALONE, READING, Told};
use crate::history::{Account, Entry, Token, What};

#[test]
fn who_is_valid_is_not_refused() {
    for (accepted, valid, broken) in [(true, true, false), (false, false, false), (false, true, true)] {
        let mut told = Told::default();
        let hold = told.claim(("c0.0", 0, "mutex", ALONE, 5, (10, 30)));
        told.say("c0.0", 0, 20, What::Stamped { hold, accepted, valid });
        assert_eq!(told.rules() == [Rule::Fence], broken, "{accepted} {valid}");
    }
}

/// A token that the fenced register of `rw` took.
fn entry(token: impl Into<Token>, reading: bool) -> Entry {
    Entry { at: 1, lock: "rw".to_owned(), token: token.into(), reading, accepted: true }
}

#[test]
fn a_fenced_register_never_goes_back() {
    for (entries, broken) in [
        (vec![entry(5, false), entry(7, false), entry(7, false), entry(9, true), entry(8, false)], false),
        (vec![entry(7, false), entry(5, false)], true),
        (vec![entry(7, false), entry(5, true)], true),
        (vec![entry((5, 1), false), entry((5, 2), false), entry(6, false)], false),
        (vec![entry((5, 1), false), entry(5, false)], true),
    ] {
        let mut told = Told::of(&[("c0.0", 3, "rw", READING, 5, (10, 30))]);
        told.history.account.stamps = entries;
        assert_eq!(told.rules() == [Rule::Fence], broken);
    }
}

/// Writes of a register, one after the other: token and version of each, and what stands in the end.
fn writes<T: Copy + Into<Token>>(writes: &[(T, i32)], (last, in_the_end): (T, i32)) -> Told {
    let mut told = Told::default();
    let mut from = 10;
    for (token, version) in writes {
        let hold = told.claim(("c0.0", 0, "mutex", ALONE, *token, (from, from + 5)));
        told.say("c0.0", 0, from + 1, What::Committed { hold, version: *version });
        from += 5;
    }
    let registers = BTreeMap::from([("mutex".to_owned(), (last.into(), in_the_end))]);
    told.history.account = Account { registers, ..Account::default() };
    told
}

fn written<T: Copy + Into<Token>>(versions: &[(T, i32)], last: (T, i32)) -> Vec<Rule> {
    writes(versions, last).rules()
}

#[test]
fn an_ensemble_that_loses_what_it_had_committed_is_told() {
    let lapsed = |versions: &[(u64, i32)], last| !lapses(&writes(versions, last).history).is_empty();
    assert!(!lapsed(&[(5, 1), (7, 2), (8, 4)], (8, 4)));
    assert!(!lapsed(&[(7, 1), (5, 2)], (5, 2)), "that is a fault of locks");
    assert!(lapsed(&[(5, 1), (7, 2), (8, 2)], (8, 2)), "one version twice");
    assert!(lapsed(&[(5, 3), (7, 2)], (7, 3)), "an older version later");
    assert!(lapsed(&[(5, 1), (7, 2)], (5, 1)), "the last one is gone");
    let mut told = Told::default();
    told.history.account.disagreements = vec!["a node is on s0 and not on s1".to_owned()];
    assert_eq!(lapses(&told.history).len(), 1);
}

#[test]
fn writes_that_were_under_way_together_may_be_told_in_any_order() {
    let mut told = Told::default();
    let slow = told.claim(("c0.0", 0, "mutex", ALONE, 5, (10, 12)));
    let quick = told.claim(("c1.0", 0, "mutex", ALONE, 7, (13, 20)));
    told.say("c1.0", 0, 15, What::Committed { hold: quick, version: 2 });
    told.say("c0.0", 0, 16, What::Committed { hold: slow, version: 1 });
    assert!(lapses(&told.history).is_empty());
}

#[test]
fn transactions_are_committed_in_the_order_of_their_tokens() {
    assert_eq!(written(&[(5, 1), (7, 2), (8, 4)], (8, 4)), []);
    assert_eq!(written(&[(5, 1), (7, 2)], (9, 3)), [], "someone wrote and did not learn of it");
    assert_eq!(written(&[(5, 2), (7, 1)], (5, 2)), [Rule::Transaction], "an older one after a newer one");
    assert_eq!(written(&[(5, 1), (7, 1)], (7, 1)), [Rule::Transaction], "one version twice");
    assert_eq!(written(&[(5, 1), (7, 2)], (5, 3)), [Rule::Transaction], "an older one in the end");
    assert_eq!(written(&[(5, 1), (7, 2)], (8, 2)), [Rule::Transaction], "another one in its place");
    assert_eq!(written(&[(5, 1), (7, 2)], (7, 1)), [Rule::Transaction], "a write is gone");
    assert_eq!(written(&[((5, 8), 1), ((5, 9), 2), ((7, 0), 3)], ((7, 0), 3)), [], "handed over");
    assert_eq!(written(&[((5, 8), 2), ((5, 9), 1)], ((5, 8), 2)), [Rule::Transaction], "in this order");
}
