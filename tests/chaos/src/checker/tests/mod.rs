//! Histories made by hand: good ones pass, and every rule has bad ones that it catches.

mod beside;
mod fleet;
mod jobs;
mod once;
mod registers;

use super::{Rule, judge};
use crate::history::{Event, History, Incident, Lane, Mode, Token, Void, What};

/// Histories as a table: the task, the instant, the event.
#[derive(Default)]
struct TestRun {
    history: History,
    holds: u64,
}

/// A hold: process, task, lock, mode, token, and from when until when it claims.
type Claim<'a, T = u64> = (&'a str, usize, &'a str, Mode, T, (u64, u64));

impl From<u64> for Token {
    fn from(zxid: u64) -> Self {
        Self { zxid, handover: 0 }
    }
}

impl From<(u64, u32)> for Token {
    fn from((zxid, handover): (u64, u32)) -> Self {
        Self { zxid, handover }
    }
}

const ALONE: Mode = Mode::Alone;
const READING: Mode = Mode::Reading;

impl TestRun {
    fn of<T: Copy + Into<Token>>(claims: &[Claim<'_, T>]) -> Self {
        let mut run = Self::default();
        for claim in claims {
            run.claim(*claim);
        }
        run
    }

    fn record(&mut self, process: &str, task: usize, at: u64, what: What) {
        let events = self.history.processes.entry(process.to_owned()).or_default();
        events.push(Event { at, task, what });
    }

    /// A hold that is killed, so that it claims until its lease ends; yields its number.
    fn claim<T: Into<Token>>(
        &mut self,
        (process, task, lock, mode, token, (start, until)): Claim<'_, T>,
    ) -> u64 {
        let token = token.into();
        self.holds += 1;
        let hold = self.holds;
        let (lock, nodes) = (lock.to_owned(), vec![format!("/{lock}/{}", token.zxid)]);
        self.record(process, task, start, What::Granted { attempt: hold, hold, lock, mode, token, nodes });
        self.record(process, task, start, What::Valid { hold, until });
        hold
    }

    fn struck(mut self, (start, stop): (u64, u64), void: Void) -> Self {
        self.history.account.incidents.push(Incident {
            kind: "a foreign client".to_owned(),
            lane: Lane::Foreign,
            target: String::new(),
            start,
            stop,
            voids: vec![void],
            failed: None,
        });
        self
    }

    fn rules(&self) -> Vec<Rule> {
        judge(&self.history).into_iter().map(|violation| violation.rule).collect()
    }
}

#[test]
fn alternating_holds_pass() {
    let run = TestRun::of(&[
        ("c0.0", 0, "mutex", ALONE, 5, (10, 20)),
        ("c1.0", 0, "mutex", ALONE, 7, (20, 30)),
        ("c0.0", 1, "mutex", ALONE, 8, (31, 40)),
        ("c0.0", 2, "rw", READING, 6, (10, 30)),
        ("c1.0", 2, "rw", READING, 5, (12, 20)),
        ("c1.0", 2, "rw", ALONE, 9, (30, 40)),
        ("c1.0", 2, "rw", READING, 9, (40, 60)),
        ("c0.0", 2, "rw", READING, 11, (45, 60)),
        ("c0.0", 5, "semaphore", Mode::Permits(2), 9, (10, 30)),
        ("c1.0", 5, "semaphore", Mode::Permits(1), 8, (11, 30)),
        ("c2.0", 5, "semaphore", Mode::Permits(2), 7, (30, 40)),
    ]);
    assert_eq!(judge(&run.history), []);
}

#[test]
fn two_who_exclude_each_other_are_not_valid_at_once() {
    let pairs = [
        ("mutex", ALONE, ALONE),
        ("reentrant", ALONE, ALONE),
        ("rw", ALONE, ALONE),
        ("rw", ALONE, READING),
        ("rw", READING, ALONE),
        ("multi-mutex", ALONE, ALONE),
    ];
    for (lock, first, second) in pairs {
        let run =
            TestRun::of(&[("c0.0", 0, lock, first, 5, (10, 21)), ("c1.0", 0, lock, second, 7, (20, 30))]);
        assert_eq!(run.rules(), [Rule::Exclusion], "{lock} {first:?} {second:?}");
    }
    let run =
        TestRun::of(&[("c0.0", 0, "mutex", ALONE, 5, (10, 21)), ("c0.0", 0, "mutex", ALONE, 7, (20, 30))]);
    assert_eq!(run.rules(), [Rule::Exclusion], "not even for one task");
}

#[test]
fn a_long_claim_conflicts_with_every_later_hold() {
    let run = TestRun::of(&[
        ("c0.0", 0, "rw", READING, 5, (10, 90)),
        ("c1.0", 0, "rw", READING, 6, (11, 12)),
        ("c2.0", 0, "rw", ALONE, 7, (60, 70)),
    ]);
    assert_eq!(run.rules(), [Rule::Exclusion]);
}

#[test]
fn an_owner_may_read_what_it_writes() {
    let run = TestRun::of(&[("c0.0", 3, "rw", ALONE, 5, (10, 40)), ("c0.0", 3, "rw", READING, 6, (20, 30))]);
    assert_eq!(judge(&run.history), []);
    let run = TestRun::of(&[("c0.0", 3, "rw", ALONE, 5, (10, 40)), ("c0.0", 4, "rw", READING, 6, (20, 30))]);
    assert_eq!(run.rules(), [Rule::Exclusion], "another task is another owner");
}

#[test]
fn no_more_permits_are_out_than_there_are() {
    let run = TestRun::of(&[
        ("c0.0", 5, "semaphore", Mode::Permits(2), 5, (10, 30)),
        ("c1.0", 5, "semaphore", Mode::Permits(2), 6, (20, 30)),
    ]);
    assert_eq!(run.rules(), [Rule::Capacity]);
}

#[test]
fn no_window_has_more_starts_than_the_limiter_admits() {
    let of = |starts: &[(u64, u32)]| {
        let mut run = TestRun::default();
        run.history.account.limiters.push(("limiter".to_owned(), 2, 100));
        for (number, (at, starts)) in (0..).zip(starts) {
            let what = What::Started { attempt: number, lock: "limiter".to_owned(), starts: *starts };
            run.record(&format!("c{}.0", number % 2), 0, *at, what);
        }
        run.rules()
    };
    assert_eq!(of(&[(10, 1), (10, 1), (110, 2), (210, 1), (250, 1), (310, 1)]), []);
    assert_eq!(of(&[(10, 2), (109, 1)]), [Rule::Rate]);
    assert_eq!(of(&[(10, 3)]), [Rule::Rate]);
    assert_eq!(of(&[(40, 1), (10, 1), (90, 1), (95, 1)]), [Rule::Rate, Rule::Rate]);
}

#[test]
fn grants_follow_the_order_of_the_tokens() {
    let passed_over = [
        ("mutex", [(ALONE, 7), (ALONE, 5)]),
        ("rw", [(READING, 7), (ALONE, 5)]),
        ("rw", [(ALONE, 7), (READING, 5)]),
        ("mutex", [(ALONE, 7), (ALONE, 7)]),
        ("rw", [(ALONE, 7), (READING, 7)]),
    ];
    for (lock, [(first, one), (second, other)]) in passed_over {
        let run = TestRun::of(&[
            ("c0.0", 0, lock, first, one, (10, 20)),
            ("c1.0", 0, lock, second, other, (20, 30)),
        ]);
        assert_eq!(run.rules(), [Rule::Order], "{lock} {first:?} {one}, {second:?} {other}");
    }
}

#[test]
fn a_grant_that_was_never_seen_to_be_valid_proves_no_order() {
    let mut run = TestRun::of(&[("c0.0", 0, "mutex", ALONE, 7, (10, 20))]);
    let (lock, nodes) = ("mutex".to_owned(), Vec::new());
    run.record(
        "c1.0",
        0,
        30,
        What::Granted { attempt: 9, hold: 9, lock, mode: ALONE, token: 5.into(), nodes },
    );
    run.record("c1.0", 0, 30, What::Invalid { hold: 9, why: "frozen".to_owned() });
    assert_eq!(judge(&run.history), []);
}

#[test]
fn tokens_are_unique_among_permits_and_one_for_an_owner() {
    let run = TestRun::of(&[
        ("c0.0", 5, "semaphore", Mode::Permits(1), 5, (10, 30)),
        ("c1.0", 5, "semaphore", Mode::Permits(1), 5, (20, 30)),
    ]);
    assert_eq!(run.rules(), [Rule::Token]);
    let mut run = TestRun::default();
    let hold = run.claim(("c0.0", 2, "reentrant", ALONE, 5, (10, 30)));
    run.record("c0.0", 2, 11, What::Again { hold, token: 5.into() });
    assert_eq!(judge(&run.history), []);
    run.record("c0.0", 2, 12, What::Again { hold, token: 6.into() });
    assert_eq!(run.rules(), [Rule::Token]);
}

#[test]
fn what_is_handed_over_within_a_process_is_a_grant_like_any_other() {
    let one_after_the_other = |tokens: &[(u64, u32)]| {
        let claims = tokens.iter().zip(1..).map(|(token, number)| {
            let process = if token.0 == 5 { "c0.0" } else { "c1.0" };
            (process, number as usize, "keeping", ALONE, *token, (10 * number, 10 * number + 10))
        });
        TestRun::of(&claims.collect::<Vec<_>>()).rules()
    };
    assert_eq!(one_after_the_other(&[(5, 0), (5, 1), (5, 10), (7, 0), (7, 1)]), []);
    assert_eq!(one_after_the_other(&[(5, 0), (5, 0)]), [Rule::Order], "not counted");
    assert_eq!(one_after_the_other(&[(5, 0), (5, 1), (5, 1)]), [Rule::Order], "counted once");
    assert_eq!(one_after_the_other(&[(5, 2), (5, 1)]), [Rule::Order], "back again");
    assert_eq!(one_after_the_other(&[(7, 0), (5, 9)]), [Rule::Order], "the zxid counts first");

    let overlap =
        [("c0.0", 5, "keeping", ALONE, (5, 0), (10, 21)), ("c0.0", 6, "keeping", ALONE, (5, 1), (20, 30))];
    assert_eq!(TestRun::of(&overlap).rules(), [Rule::Exclusion]);
    let deleted = Void::Node { path: "/keeping/5".to_owned(), at: 18 };
    assert_eq!(TestRun::of(&overlap).struck((18, 19), deleted).rules(), [], "of all that rest on the node");
}

#[test]
fn a_foreign_change_voids_the_claims_that_it_ended_and_no_others() {
    let overlap =
        || TestRun::of(&[("c0.0", 0, "mutex", ALONE, 5, (10, 25)), ("c1.0", 0, "mutex", ALONE, 7, (20, 30))]);
    let node = |token, at| Void::Node { path: format!("/mutex/{token}"), at };
    let session = |client: &str| Void::Session { client: client.to_owned() };
    assert_eq!(overlap().struck((18, 19), node(5, 18)).rules(), []);
    assert_eq!(overlap().struck((18, 19), session("c0")).rules(), []);
    assert_eq!(overlap().struck((18, 19), node(4, 18)).rules(), [Rule::Exclusion], "another node");
    assert_eq!(overlap().struck((22, 23), node(5, 22)).rules(), [Rule::Exclusion], "the change was too late");
    assert_eq!(overlap().struck((18, 19), session("c2")).rules(), [Rule::Exclusion], "another client");
    assert_eq!(overlap().struck((5, 9), session("c0")).rules(), [Rule::Exclusion], "another session");
}

#[test]
fn a_closed_session_voids_what_is_handed_over_later_on_a_node_of_that_session() {
    let after_the_close = |token: (u64, u32)| {
        let run = TestRun::of(&[
            ("c0.0", 5, "keeping", ALONE, (5, 0), (10, 15)),
            ("c1.0", 5, "keeping", ALONE, (7, 0), (20, 30)),
            ("c0.0", 6, "keeping", ALONE, token, (25, 40)),
        ]);
        run.struck((12, 18), Void::Session { client: "c0".to_owned() }).rules()
    };
    assert_eq!(after_the_close((5, 1)), []);
    assert_eq!(after_the_close((8, 0)), [Rule::Exclusion], "a node of the next session");
}

#[test]
fn a_foreign_change_does_not_void_transactions() {
    let mut run = TestRun::default();
    let newer = run.claim(("c1.0", 0, "mutex", ALONE, 7, (10, 15)));
    let older = run.claim(("c0.0", 0, "mutex", ALONE, 5, (1, 9)));
    run.record("c1.0", 0, 11, What::Committed { hold: newer, version: 1 });
    run.record("c0.0", 0, 12, What::Committed { hold: older, version: 2 });
    let run = run.struck((0, 1), Void::Node { path: "/mutex/5".to_owned(), at: 0 });
    assert_eq!(run.rules(), [Rule::Transaction]);
}

#[test]
fn orphans_starved_clients_crashes_and_errors_are_reported() {
    let mut run = TestRun::default();
    run.history.account.orphans = vec!["/chaos/locks/mutex/x".to_owned()];
    run.history.account.unserved = vec![("c0".to_owned(), "rw".to_owned())];
    run.history.account.died = vec!["c1.0: panicked".to_owned()];
    run.record("c0.0", 0, 5, What::Failed { attempt: 1, error: "no".to_owned(), transient: true });
    assert_eq!(run.rules(), [Rule::Orphan, Rule::Liveness, Rule::Death]);
    run.record("c0.0", 0, 5, What::Failed { attempt: 2, error: "mixed".to_owned(), transient: false });
    let hold = run.claim(("c0.0", 0, "mutex", ALONE, 5, (10, 30)));
    run.record("c0.0", 0, 12, What::Contradiction { hold, text: "lost, but valid".to_owned() });
    for rule in [Rule::Error, Rule::Loss] {
        assert!(run.rules().contains(&rule), "{rule:?}");
    }
    run.record("c0.0", 3, 5, What::Asked { attempt: 3, locks: vec!["rw".to_owned()] });
    run.record("c0.0", 4, 6, What::GaveUp { attempt: 4, why: "of another".to_owned() });
    run.record("c0.0", 3, 7, What::GaveUp { attempt: 3, why: "behind an orphan".to_owned() });
    let unserved = judge(&run.history).into_iter().find(|violation| violation.rule == Rule::Liveness);
    assert_eq!(unserved.unwrap().text, "c0 was not granted it again. behind an orphan");
    let orphan = judge(&run.history).into_iter().find(|violation| violation.rule == Rule::Orphan);
    assert_eq!(orphan.unwrap().lock, "mutex");
}
