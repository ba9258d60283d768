//! The items of a work queue, and the entries of a table.

use super::{ALONE, Rule, TestRun, What, judge};
use crate::history::Jobs;

/// A run in which one client puts item `a`, another one ends it as its hold 1, and the effect exists.
fn done() -> TestRun {
    let mut run = put(What::Put { attempt: 1 });
    run.claim(("c1.0", 30, "jobs/a", ALONE, 5, (30, 40)));
    run.record("c1.0", 30, 50, What::Done { hold: 1 });
    run.history.account.jobs = effects(&["c1.0 1"]);
    run
}

/// A run in which a client puts item `a`, and has this answer.
fn put(answer: What) -> TestRun {
    let mut run = TestRun::default();
    run.record("c0.0", 29, 10, What::Putting { attempt: 1, items: vec!["a".to_owned()] });
    run.record("c0.0", 29, 20, answer);
    run
}

/// The answer to a put that was killed.
const UNKNOWN: What = What::Quiet;

fn effects(by: &[&str]) -> Jobs {
    let effects = by.iter().map(|by| ("a".to_owned(), (*by).to_owned())).collect();
    Jobs { effects, ..Jobs::default() }
}

#[test]
fn an_item_that_was_put_is_done_once_or_has_failed() {
    assert_eq!(judge(&done().history), []);
    let mut run = put(What::Put { attempt: 1 });
    assert_eq!(run.rules(), [Rule::Queue], "lost");
    run.history.account.jobs = Jobs { failed: vec!["a".to_owned()], ..Jobs::default() };
    assert_eq!(judge(&run.history), []);
    run.history.account.jobs.failed.push("a".to_owned());
    assert_eq!(run.rules(), [Rule::Queue], "failed twice");
    run.history.account.jobs = Jobs { waiting: vec!["a".to_owned()], ..Jobs::default() };
    assert_eq!(run.rules(), [Rule::Queue], "nobody takes it");
    run.history.account.jobs = Jobs { drained: vec!["a".to_owned()], ..effects(&[Jobs::DRIVER]) };
    assert_eq!(judge(&run.history), []);
}

#[test]
fn an_item_has_no_second_effect_and_is_at_one_place() {
    let mut run = done();
    run.claim(("c2.0", 30, "jobs/a", ALONE, 7, (60, 70)));
    run.history.account.jobs = effects(&["c1.0 1", "c2.0 2"]);
    assert_eq!(run.rules(), [Rule::Queue], "done twice");
    run.history.account.jobs = effects(&["c1.0 1", "c1.0 1"]);
    assert_eq!(run.rules(), [Rule::Queue], "one end was applied twice");
    run.history.account.jobs = Jobs { failed: vec!["a".to_owned()], ..effects(&["c1.0 1"]) };
    assert_eq!(run.rules(), [Rule::Queue], "done and failed");
    run.history.account.jobs = Jobs { waiting: vec!["a".to_owned()], ..effects(&["c1.0 1"]) };
    assert_eq!(run.rules(), [Rule::Queue], "done, and in the queue");
}

#[test]
fn an_item_whose_put_has_no_known_outcome_is_there_at_most_once() {
    let mut run = put(UNKNOWN);
    assert_eq!(judge(&run.history), []);
    run.history.account.jobs = Jobs { waiting: vec!["a".to_owned()], ..Jobs::default() };
    assert_eq!(judge(&run.history), [], "it may arrive when the queue was read");
    run.history.account.jobs = Jobs { failed: vec!["a".to_owned()], ..Jobs::default() };
    assert_eq!(judge(&run.history), []);
    run.history.account.jobs.waiting.push("a".to_owned());
    assert_eq!(run.rules(), [Rule::Queue]);
}

#[test]
fn what_was_not_put_is_nowhere() {
    let mut run = put(What::NotPut { attempt: 1 });
    assert_eq!(judge(&run.history), []);
    run.history.account.jobs = Jobs { failed: vec!["a".to_owned()], ..Jobs::default() };
    assert_eq!(run.rules(), [Rule::Queue], "the answer was wrong");
    run.record("c0.0", 29, 30, What::Putting { attempt: 2, items: vec!["a".to_owned()] });
    assert_eq!(judge(&run.history), [], "another call with the same id may have put it");
    let mut run = TestRun::default();
    run.history.account.jobs = Jobs { failed: vec!["b".to_owned()], ..Jobs::default() };
    assert_eq!(run.rules(), [Rule::Queue], "nobody has put it");
}

#[test]
fn an_effect_is_that_of_a_hold_that_ended_the_item() {
    let mut run = done();
    run.history.account.jobs = effects(&["c1.0 9"]);
    assert_eq!(
        run.rules(),
        [Rule::Queue, Rule::Queue],
        "nobody took it so, and the one that ended it is missing"
    );
    run.history.account.jobs = effects(&[Jobs::DRIVER]);
    assert_eq!(run.rules(), [Rule::Queue, Rule::Queue], "the driver did not take it");
    let mut run = done();
    run.claim(("c2.0", 30, "jobs/a", ALONE, 7, (60, 70)));
    run.history.account.jobs = effects(&["c2.0 2"]);
    assert_eq!(run.rules(), [Rule::Queue], "the effect of the one that ended it is missing");
    let mut run = done();
    run.record("c1.0", 30, 51, What::NotDone { hold: 1 });
    assert_eq!(run.rules(), [Rule::Queue], "the answer was wrong");
}

#[test]
fn an_item_that_was_moved_to_the_failed_ones_is_there() {
    let mut run = done();
    run.claim(("c2.0", 30, "jobs/a", ALONE, 7, (60, 70)));
    run.record("c2.0", 30, 80, What::MovedToFailed { hold: 2 });
    assert_eq!(run.rules(), [Rule::Queue]);
}

#[test]
fn an_item_has_one_node() {
    let taken = |path: &str| {
        let mut run = done();
        run.record("c1.0", 30, 31, What::Taken { hold: 1, path: "/chaos/jobs/items/1".to_owned() });
        run.claim(("c2.0", 30, "jobs/a", ALONE, 7, (60, 70)));
        run.record("c2.0", 30, 61, What::Taken { hold: 2, path: path.to_owned() });
        run.rules()
    };
    assert_eq!(taken("/chaos/jobs/items/1"), []);
    assert_eq!(taken("/chaos/jobs/items/2"), [Rule::Queue], "it was put twice");
}

#[test]
fn an_item_is_not_taken_more_often_than_the_queue_allows() {
    for (takes, rules) in [(6, &[][..]), (7, &[Rule::Queue])] {
        let mut run = put(What::Put { attempt: 1 });
        for take in 1..=takes {
            run.claim(("c1.0", 30, "jobs/a", ALONE, take, (30 + 10 * take, 35 + 10 * take)));
        }
        run.history.account.jobs = effects(&[&format!("c1.0 {takes}")]);
        assert_eq!(run.rules(), rules, "{takes}");
    }
}

#[test]
fn the_claim_of_an_item_is_a_lock() {
    let claims = |second, from| {
        let mut run = done();
        run.claim(("c2.0", 30, "jobs/a", ALONE, second, (from, from + 10)));
        run.rules()
    };
    assert_eq!(claims(7, 40), []);
    assert_eq!(claims(7, 39), [Rule::Exclusion]);
    assert_eq!(claims(5, 40), [Rule::Order], "the token does not grow");
}

#[test]
fn each_addition_to_an_entry_of_a_table_counts_once() {
    for (sums, last, rules) in [
        (&[1, 2][..], 2, &[][..]),
        (&[1, 2], 1, &[Rule::Counter]),
        (&[1, 2], 3, &[Rule::Counter]),
        (&[1, 1], 2, &[Rule::Counter]),
        (&[], 1, &[Rule::Counter]),
    ] {
        let mut run = TestRun::default();
        for (number, sum) in (0..).zip(sums) {
            run.record("c0.0", 9, 10 * number, What::Updating { attempt: number, entry: "x".to_owned() });
            run.record("c0.0", 9, 10 * number + 5, What::Updated { attempt: number, sum: *sum });
        }
        run.history.account.entries.insert("x".to_owned(), last);
        // Another entry has its own sum.
        run.record("c0.0", 9, 90, What::Updating { attempt: 9, entry: "y".to_owned() });
        run.record("c0.0", 9, 95, What::Updated { attempt: 9, sum: 1 });
        run.history.account.entries.insert("y".to_owned(), 1);
        assert_eq!(run.rules(), rules, "{sums:?}");
    }
    let mut run = TestRun::default();
    run.record("c0.0", 9, 10, What::Updating { attempt: 1, entry: "x".to_owned() });
    run.record("c0.0", 9, 20, What::NotUpdated { attempt: 1 });
    assert_eq!(judge(&run.history), []);
    run.history.account.entries.insert("x".to_owned(), 1);
    assert_eq!(run.rules(), [Rule::Counter], "the answer was wrong");
}
