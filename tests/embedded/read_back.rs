//! A write has no answer, and nothing that the client may read says whether it was applied.

use std::time::{Duration, SystemTime};

use lockkeeper::error::{InitError, Outcome};
use lockkeeper::schedule::{Missed, Slot};
use lockkeeper::{ConnectionManager, Error, OnceCell, Schedule};
use lockkeeper_testserver::{ErrorCode, Fault, Op, When};

use crate::limit::within;
use crate::server_fixture::{LOCK, ServerFixture, builder, children};

/// So long that only the tested events end a session.
const SESSION: Duration = Duration::from_secs(60);

/// Far longer than a test takes: a slot begins when the clock of the servers is advanced.
const INTERVAL: Duration = Duration::from_secs(20);

const SLOTS: &str = "/locks/lock/slots";

async fn client(server_fixture: &ServerFixture) -> ConnectionManager {
    let client = builder(&server_fixture.server.connect_string()).session_timeout(SESSION);
    client.connect().await.unwrap()
}

async fn slot(server_fixture: &ServerFixture) -> Slot {
    // A slot begins a second before the test, so that no other one begins by itself during the test: the
    // server's clock may be a little behind this one.
    let offset = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap() - Duration::from_secs(1);
    let schedule = Schedule::new(&client(server_fixture).await, LOCK, INTERVAL).unwrap();
    let schedule = schedule.with_offset(offset).with_missed(Missed::CatchUp);
    assert!(schedule.try_due().await.unwrap().is_none(), "a slot before the schedule began");
    server_fixture.server.advance_clock(INTERVAL);
    within("a slot", schedule.due()).await.unwrap().unwrap()
}

#[track_caller]
fn assert_unknown(error: &Error) {
    assert_eq!(error.outcome(), Outcome::Unknown, "{error}");
    assert!(!error.is_transient(), "{error}");
}

#[tokio::test]
async fn a_slot_without_an_answer_is_unknown_only_if_its_record_cannot_be_read() {
    let record = format!("{SLOTS}/*");
    for fault in [Fault::Refuse(ErrorCode::NoAuth), Fault::DropConnectionBefore, Fault::HoldRequest] {
        let server_fixture = ServerFixture::start().await.unwrap();
        let server = &server_fixture.server;
        let slot = slot(&server_fixture).await;
        let commit = server.fault(When::op(Op::Multi).path(&record), Fault::DropConnectionAfter);
        let read = server.fault(When::op(Op::GetData).path(&record), fault);
        let done = tokio::spawn(slot.done("done"));
        within("the record is read", read.hit()).await.unwrap();
        if fault == Fault::HoldRequest {
            // Another process has deleted the record since.
            let newest = server.inspect(|machine| children(machine, SLOTS)).pop().unwrap();
            assert!(server.delete_node(&format!("{SLOTS}/{newest}")));
            read.release();
        }
        let ended = within("the end", done).await.unwrap().unwrap();
        assert_eq!(commit.hits(), 1);
        match fault {
            // The read is sent again, and finds the record.
            Fault::DropConnectionBefore => ended.unwrap(),
            _ => assert_unknown(&ended.unwrap_err()),
        }
    }
}

#[tokio::test]
async fn a_value_without_an_answer_is_unknown_if_the_next_attempt_is_refused() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let server = &server_fixture.server;
    let before = server.sessions();
    let cell = OnceCell::new(&client(&server_fixture).await, LOCK).unwrap();
    let session = server.sessions().into_iter().find(|session| !before.contains(session)).unwrap();
    let store = server.fault(When::op(Op::Multi).path("/locks/lock/value").always(), Fault::DropReply);
    let stored = tokio::spawn(async move {
        cell.get_or_try_init(async || Ok::<_, std::fmt::Error>(b"value".to_vec())).await
    });
    within("the transaction", store.hit()).await.unwrap();
    let enter = When::create().path("/locks/lock/locks/*").always();
    let _refused = server.fault(enter, Fault::Refuse(ErrorCode::NoAuth));
    assert!(server.expire(session));
    match within("the end", stored).await.unwrap().unwrap() {
        Err(InitError::Cell(error)) => assert_unknown(&error),
        other => panic!("{other:?}"),
    }
}
