use crate::error::Refusal;
use crate::presence::OnDeletion;
use crate::presence::decide::{Engine, Event, Found, Leftover, Request, Status, Step};
use crate::znode::zxid::Zxid;

const NOW: i64 = 7;
const BEFORE: i64 = 6;
const OTHER: i64 = 99;

fn engine(policy: OnDeletion) -> Engine {
    let mut engine = Engine::new(policy, (*b"data").into());
    assert_eq!(engine.next(), Step::WaitForSession);
    engine.handle(Event::SessionOpened { session: NOW, earlier: vec![BEFORE] });
    engine
}

fn read(owner: i64, czxid: i64) -> Event {
    Event::Read(Found { owner, czxid: Zxid::new(czxid), version: 3 }, b"data".to_vec())
}

/// The events, and the step and the status that follow.
fn row(policy: OnDeletion, events: &[Event], step: &Step, status: Status) {
    let mut engine = engine(policy);
    for event in events {
        engine.handle(event.clone());
    }
    assert_eq!((&engine.next(), engine.status()), (step, status), "{policy:?} {events:?}");
}

const REGISTERED: Status = Status::Registered { czxid: Zxid::new(20) };
const FOREIGN: Status = Status::Conflict { owner: OTHER };

#[test]
fn each_answer_has_one_next_step() {
    use Event::{Created, ReadNothing, Reconnected, Unanswered, Verified, WatchFired};
    let exists = Event::Refused(Request::Create, Refusal::NodeExists);
    let (created, ours) = (Created(Some(Zxid::new(20))), read(NOW, 20));
    let rows: Vec<(Vec<Event>, Step, Status)> = vec![
        (vec![], Step::Create, Status::Missing),
        (vec![created.clone()], Step::Read, REGISTERED),
        (vec![created.clone(), ours.clone()], Step::Wait, REGISTERED),
        // Without a zxid in the answer, a read has it.
        (vec![Created(None)], Step::Read, Status::Missing),
        (vec![Created(None), ours.clone()], Step::Wait, REGISTERED),
        // Without an answer, a read tells what happened.
        (vec![Unanswered(Request::Create)], Step::Read, Status::Missing),
        (vec![Unanswered(Request::Create), ours.clone()], Step::Wait, REGISTERED),
        (vec![Unanswered(Request::Create), ReadNothing], Step::Create, Status::Missing),
        // A node of an earlier session is replaced, and one of another client is not.
        (vec![exists.clone()], Step::Read, Status::Missing),
        (vec![exists.clone(), read(BEFORE, 9)], Step::Replace(3), Status::Missing),
        (vec![exists.clone(), read(BEFORE, 9), created.clone(), ours.clone()], Step::Wait, REGISTERED),
        (vec![exists.clone(), read(BEFORE, 9), Unanswered(Request::Replace)], Step::Read, Status::Missing),
        (vec![exists.clone(), read(OTHER, 9)], Step::VerifyOther(Zxid::new(9)), FOREIGN),
        (vec![exists.clone(), read(OTHER, 9), Verified], Step::Wait, FOREIGN),
        (vec![exists.clone(), read(OTHER, 9), WatchFired], Step::Read, FOREIGN),
        (vec![exists.clone(), read(OTHER, 9), WatchFired, ReadNothing], Step::Create, Status::Missing),
        (vec![exists.clone(), read(0, 9), Verified], Step::Wait, Status::Conflict { owner: 0 }),
        // A reconnect writes nothing.
        (vec![created.clone(), ours.clone(), Reconnected], Step::Verify, REGISTERED),
        (vec![created.clone(), ours.clone(), Reconnected, Verified], Step::Read, REGISTERED),
        (vec![created.clone(), ours.clone(), Reconnected, Verified, ours], Step::Wait, REGISTERED),
        (vec![Event::Refused(Request::Create, Refusal::NoNode)], Step::MakeParent, Status::Missing),
        (vec![created.clone(), Event::SessionEnded], Step::WaitForSession, Status::Missing),
    ];
    for (events, step, status) in &rows {
        for policy in [OnDeletion::Recreate, OnDeletion::End] {
            row(policy, events, step, *status);
        }
    }
}

#[test]
fn a_deletion_by_another_client_follows_the_policy() {
    let created = [Event::Created(Some(Zxid::new(20))), read(NOW, 20), Event::WatchFired];
    for (then, step, status) in [
        (Event::ReadNothing, Step::Create, Status::Missing),
        (read(OTHER, 30), Step::VerifyOther(Zxid::new(30)), FOREIGN),
    ] {
        let events = [&created[..], &[then]].concat();
        row(OnDeletion::Recreate, &events, &step, status);
        row(OnDeletion::End, &events, &Step::End, Status::Deleted);
    }
    // The state is final, also if the session ends in this instant.
    let events = [&created[..], &[Event::ReadNothing, Event::SessionEnded]].concat();
    row(OnDeletion::End, &events, &Step::End, Status::Deleted);
    // The end of a session is no deletion by another client.
    let reopened = Event::SessionOpened { session: 8, earlier: vec![BEFORE, NOW] };
    let events = [&created[..2], &[Event::SessionEnded, reopened]].concat();
    row(OnDeletion::End, &events, &Step::Create, Status::Missing);
}

/// What became of the calls: the last one that was applied, and those that were refused since.
fn fates(engine: &mut Engine) -> (u64, Vec<u64>) {
    let refused = engine.targets_mut().take_refused();
    (engine.targets().applied(), refused.iter().map(|(number, _)| *number).collect())
}

fn ours(version: i32, data: &str) -> Event {
    Event::Read(Found { owner: NOW, czxid: Zxid::new(20), version }, data.into())
}

fn set(data: &str) -> Event {
    Event::SetData(data.as_bytes().into())
}

const REFUSED: Event = Event::Refused(Request::Write, Refusal::QuotaExceeded);

#[test]
fn data_is_written_again_in_each_session_and_a_refusal_keeps_the_old() {
    let mut engine = engine(OnDeletion::Recreate);
    engine.handle(Event::Created(Some(Zxid::new(20))));
    engine.handle(read(NOW, 20));
    engine.handle(set("more"));
    assert_eq!((engine.next(), fates(&mut engine)), (Step::Write(3), (0, vec![])));
    engine.handle(Event::Unanswered(Request::Write));
    // The write was applied, and its answer lost.
    engine.handle(ours(4, "more"));
    assert_eq!((engine.next(), fates(&mut engine)), (Step::Wait, (1, vec![])));

    engine.handle(set("too much"));
    engine.handle(ours(4, "more"));
    assert_eq!((engine.next(), fates(&mut engine)), (Step::Write(4), (1, vec![])));
    engine.handle(REFUSED);
    assert_eq!(fates(&mut engine), (1, vec![2]));
    assert_eq!((engine.next(), &**engine.targets().data()), (Step::Wait, &b"more"[..]));

    engine.handle(Event::SessionEnded);
    engine.handle(set("last"));
    engine.handle(Event::SessionOpened { session: 8, earlier: vec![NOW] });
    engine.handle(Event::Created(Some(Zxid::new(40))));
    assert_eq!(fates(&mut engine), (3, vec![]));
    assert_eq!(&**engine.targets().data(), b"last");
}

#[test]
fn refused_data_is_never_the_data_of_a_later_session() {
    let mut engine = engine(OnDeletion::Recreate);
    // The create was applied, and its answer is lost.
    engine.handle(Event::Unanswered(Request::Create));
    engine.handle(set("too much"));
    engine.handle(ours(0, "data"));
    assert_eq!(engine.next(), Step::Write(0));
    engine.handle(REFUSED);
    assert_eq!(fates(&mut engine), (0, vec![1]));
    assert_eq!(engine.next(), Step::Wait);
    engine.handle(Event::SessionEnded);
    engine.handle(Event::SessionOpened { session: 8, earlier: vec![NOW] });
    assert_eq!((engine.next(), &**engine.targets().data()), (Step::Create, &b"data"[..]));
}

#[test]
fn each_of_several_calls_has_the_fate_of_its_own_write() {
    // The first is applied without an answer, the second comes before this is seen, and is refused.
    let mut one = engine(OnDeletion::Recreate);
    for event in [Event::Created(Some(Zxid::new(20))), ours(0, "data"), set("first")] {
        one.handle(event);
    }
    one.handle(Event::Unanswered(Request::Write));
    one.handle(set("second"));
    one.handle(ours(1, "first"));
    assert_eq!((one.next(), fates(&mut one)), (Step::Write(1), (1, vec![])));
    one.handle(REFUSED);
    assert_eq!((one.next(), fates(&mut one)), (Step::Wait, (1, vec![2])));
    assert_eq!(&**one.targets().data(), b"first");

    // Neither was sent: the last one is refused, and the one before is in force again.
    let mut two = engine(OnDeletion::Recreate);
    for event in [Event::Created(Some(Zxid::new(20))), ours(0, "data"), set("first"), set("second")] {
        two.handle(event);
    }
    two.handle(REFUSED);
    assert_eq!((two.next(), fates(&mut two)), (Step::Write(0), (0, vec![2])));
    two.handle(Event::Wrote(Found { owner: NOW, czxid: Zxid::new(20), version: 1 }));
    assert_eq!((two.next(), fates(&mut two)), (Step::Wait, (1, vec![])));
    assert_eq!(&**two.targets().data(), b"first");
}

#[test]
fn a_write_without_an_answer_that_was_not_applied_can_be_refused_later() {
    let mut engine = engine(OnDeletion::Recreate);
    for event in [Event::Created(Some(Zxid::new(20))), ours(0, "data"), set("more")] {
        engine.handle(event);
    }
    engine.handle(Event::Unanswered(Request::Write));
    engine.handle(ours(0, "data"));
    assert_eq!((engine.next(), fates(&mut engine)), (Step::Write(0), (0, vec![])));
    engine.handle(REFUSED);
    assert_eq!((engine.next(), fates(&mut engine)), (Step::Wait, (0, vec![1])));
    assert_eq!(&**engine.targets().data(), b"data");
}

#[test]
fn the_data_of_a_superseded_call_is_kept_while_the_node_may_have_it() {
    let mut engine = engine(OnDeletion::Recreate);
    for event in [Event::Created(Some(Zxid::new(20))), ours(0, "data"), set("first")] {
        engine.handle(event);
    }
    engine.handle(Event::Unanswered(Request::Write));
    engine.handle(set("second"));
    engine.targets_mut().forget(|_| false);
    engine.handle(ours(1, "first"));
    engine.handle(REFUSED);
    assert_eq!((engine.next(), &**engine.targets().data()), (Step::Wait, &b"first"[..]));
}

#[test]
fn a_refusal_to_restore_the_data_is_reported_once() {
    let mut engine = engine(OnDeletion::Recreate);
    engine.handle(Event::Created(Some(Zxid::new(20))));
    for reported in [vec![0], vec![]] {
        engine.handle(ours(1, "theirs"));
        engine.handle(REFUSED);
        assert_eq!((engine.next(), fates(&mut engine)), (Step::Wait, (0, reported)));
    }
}

#[test]
fn the_data_of_a_superseded_call_is_kept_only_while_its_caller_waits() {
    let mut engine = engine(OnDeletion::Recreate);
    for event in
        [Event::Created(Some(Zxid::new(20))), ours(0, "data"), set("1"), set("2"), set("3"), set("4")]
    {
        engine.handle(event);
    }
    engine.targets_mut().forget(|number| number == 2);
    engine.handle(REFUSED);
    assert_eq!(&**engine.targets().data(), b"2");
    engine.handle(REFUSED);
    assert_eq!(fates(&mut engine), (0, vec![4, 2]));
    assert_eq!(&**engine.targets().data(), b"data");
    assert_eq!(engine.next(), Step::Wait);
}

#[test]
fn what_another_client_wrote_is_replaced() {
    let mut engine = engine(OnDeletion::Recreate);
    engine.handle(Event::Created(Some(Zxid::new(20))));
    engine.handle(Event::Read(Found { owner: NOW, czxid: Zxid::new(20), version: 1 }, b"theirs".to_vec()));
    assert_eq!((engine.next(), engine.status()), (Step::Write(1), REGISTERED));
    engine.handle(Event::Refused(Request::Write, Refusal::BadVersion));
    assert_eq!(engine.next(), Step::Read);
    engine.handle(Event::Read(Found { owner: NOW, czxid: Zxid::new(20), version: 2 }, b"theirs".to_vec()));
    // The write reached a node that another session had created meanwhile.
    engine.handle(Event::Wrote(Found { owner: OTHER, czxid: Zxid::new(50), version: 3 }));
    assert_eq!((engine.status(), engine.targets().is_stored()), (FOREIGN, false));
}

#[test]
fn a_refusal_is_shown_and_tried_again() {
    let mut engine = engine(OnDeletion::Recreate);
    engine.handle(Event::Refused(Request::Create, Refusal::NoAuth));
    assert_eq!(engine.status(), Status::Refused(Refusal::NoAuth));
    assert_eq!(engine.next(), Step::Retry);
    engine.handle(Event::RetryDue);
    assert_eq!(engine.next(), Step::Create);
    // Other data is tried at once. It is the data of the node, so the call is not refused.
    engine.handle(Event::Refused(Request::Create, Refusal::QuotaExceeded));
    assert_eq!(engine.next(), Step::Retry);
    engine.handle(Event::SetData((*b"less").into()));
    assert_eq!(engine.next(), Step::Create);
    engine.handle(Event::Refused(Request::Create, Refusal::QuotaExceeded));
    assert_eq!((engine.next(), fates(&mut engine)), (Step::Retry, (0, vec![])));
    assert_eq!(&**engine.targets().data(), b"less");
}

#[test]
fn a_release_deletes_what_may_exist() {
    let created = Event::Created(Some(Zxid::new(20)));
    let lost = Event::Unanswered(Request::Create);
    let leftover = |version, in_doubt| Some(Leftover { version, in_doubt });
    for (events, expected) in [
        (vec![], None),
        (vec![created.clone()], leftover(Some(0), false)),
        (vec![created.clone(), Event::WatchFired], leftover(None, false)),
        (vec![lost.clone()], leftover(None, true)),
        // The create without an answer may be applied later, also after a second one.
        (vec![lost.clone(), Event::ReadNothing, created.clone()], leftover(Some(0), true)),
        // A read of the node of the second one says nothing about the first one, however the node is written.
        (
            vec![lost.clone(), Event::ReadNothing, Event::Created(None), ours(0, "data")],
            leftover(Some(0), true),
        ),
        (
            [vec![lost.clone(), Event::ReadNothing, created], vec![ours(1, "foreign"); 2]].concat(),
            leftover(Some(1), true),
        ),
        // It was applied.
        (vec![lost.clone(), read(NOW, 20)], leftover(Some(3), false)),
        (vec![lost.clone(), read(OTHER, 20)], leftover(None, true)),
        (vec![lost, Event::SessionEnded], None),
        (vec![read(OTHER, 20)], None),
    ] {
        let mut engine = engine(OnDeletion::Recreate);
        events.iter().for_each(|event| engine.handle(event.clone()));
        assert_eq!(engine.leftover(), expected, "{events:?}");
    }
}
