//! The counter, the views and the double barrier.

use super::{ALONE, Incident, Lane, Rule, TestRun, What, judge};

fn registers(versions: &[(&str, i32)]) -> std::collections::BTreeMap<String, i32> {
    versions.iter().map(|(name, version)| ((*name).to_owned(), *version)).collect()
}

#[test]
fn each_addition_counts_once() {
    for (sums, last, rules) in [
        (&[1, 2][..], 2, &[][..]),
        (&[1, 3], 3, &[Rule::Counter]),
        (&[1, 1], 2, &[Rule::Counter]),
        (&[2, 1], 2, &[Rule::Counter]),
    ] {
        let mut run = TestRun::default();
        for (number, sum) in (0..).zip(sums) {
            run.record("c0.0", 9, 10 * number, What::Adding { attempt: number });
            run.record("c0.0", 9, 10 * number + 5, What::Added { attempt: number, sum: *sum });
        }
        run.history.account.number = last;
        assert_eq!(run.rules(), rules, "{sums:?}");
    }
    let mut killed = TestRun::default();
    killed.record("c0.0", 9, 10, What::Adding { attempt: 1 });
    for last in [0, 1] {
        killed.history.account.number = last;
        assert_eq!(judge(&killed.history), []);
    }
}

#[test]
fn a_view_never_shows_an_older_version_again() {
    for (versions, rules) in [([3, 4], &[][..]), ([4, 3], &[Rule::View]), ([4, 4], &[Rule::View])] {
        let mut run = TestRun::default();
        for (at, version) in (10..).zip(versions) {
            run.record("c0.0", 9, at, What::Shown { register: "mutex".to_owned(), version });
        }
        assert_eq!(run.rules(), rules, "{versions:?}");
    }
}

#[test]
fn after_a_sync_a_view_shows_nothing_older_than_the_call() {
    let synced = |asked, version| {
        let mut run = TestRun::default();
        let hold = run.claim(("c1.0", 0, "mutex", ALONE, 5_u64, (10, 40)));
        run.record("c1.0", 0, 20, What::Committed { hold, version: 3 });
        run.record("c0.0", 9, 35, What::Synced { asked, registers: registers(&[("mutex", version)]) });
        // Nor while a leader may be cut off and answer on.
        run.history.account.servers = 3;
        run.history.account.incidents.push(Incident {
            kind: "a leader that no server hears".to_owned(),
            lane: Lane::Servers,
            target: String::new(),
            start: 1,
            stop: 30,
            voids: Vec::new(),
            failed: None,
        });
        run.rules()
    };
    assert_eq!(synced(25, 3), []);
    assert_eq!(synced(25, 2), [Rule::View]);
    assert_eq!(synced(15, 2), [], "asked before the commit");
}

#[test]
fn nobody_enters_a_double_barrier_alone() {
    let run = |other: &[(u64, What)]| {
        let mut run = TestRun::default();
        run.record("c0.0", 9, 10, What::Entering { attempt: 1 });
        run.record("c0.0", 9, 20, What::Entered { attempt: 1 });
        for (at, what) in other {
            run.record("c1.0", 9, *at, what.clone());
        }
        run.rules()
    };
    let (entering, left) = (What::Entering { attempt: 1 }, What::Left { attempt: 1 });
    assert_eq!(run(&[]), [Rule::Barrier]);
    assert_eq!(run(&[(15, entering.clone())]), []);
    assert_eq!(run(&[(5, entering.clone()), (12, left.clone())]), []);
    assert_eq!(run(&[(5, entering.clone()), (9, left)]), [Rule::Barrier]);
    assert_eq!(run(&[(21, entering)]), [Rule::Barrier]);
}
