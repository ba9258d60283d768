//! Slots and values.

use super::super::Rule;
use super::{ALONE, TestRun};
use crate::history::What;

/// Slots that were due, one after the other, and how each hold ended.
fn slots(due: &[(u64, u64, &str)]) -> Vec<Rule> {
    let mut run = TestRun::default();
    for (at, (token, slot, outcome)) in (10..).step_by(10).zip(due) {
        let hold = run.claim(("c0.0", 0, "schedule", ALONE, *token, (at, at + 5)));
        run.record("c0.0", 0, at, What::Due { hold, slot: *slot });
        run.record("c0.0", 0, at + 5, What::Ended { hold });
        run.record("c0.0", 0, at + 5, What::Released { hold, outcome: (*outcome).to_owned() });
    }
    run.rules()
}

#[test]
fn a_slot_that_was_recorded_is_never_due_again() {
    assert_eq!(slots(&[(5, 100, "released"), (6, 200, "released"), (8, 900, "released")]), []);
    assert_eq!(
        slots(&[(5, 100, "lost"), (6, 100, "no answer"), (8, 100, "released")]),
        [],
        "given up before"
    );
    assert_eq!(slots(&[(5, 100, "released"), (6, 100, "released")]), [Rule::Once]);
    assert_eq!(slots(&[(5, 100, "released"), (6, 100, "lost")]), [Rule::Once], "due again");
    assert_eq!(slots(&[(5, 200, "released"), (6, 100, "released")]), [Rule::Once], "an earlier one");
}

#[test]
fn a_cell_has_one_value_for_all() {
    for (cell, value, broken) in [(1, "a", false), (2, "b", false), (1, "b", true)] {
        let mut run = TestRun::default();
        run.record("c0.0", 0, 10, What::Value { cell: 1, value: "a".to_owned() });
        run.record("c1.0", 0, 20, What::Value { cell, value: value.to_owned() });
        assert_eq!(run.rules() == [Rule::Once], broken, "{cell} {value}");
    }
}
