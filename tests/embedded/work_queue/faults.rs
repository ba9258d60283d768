//! Every fault at every request, and a drop at every await.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::{StreamExt, stream};
use lockkeeper::error::Outcome;
use lockkeeper::znodes::Version;
use lockkeeper::{ConnectionManager, Error};
use lockkeeper_test_recipes::mutex::Plain;
use lockkeeper_testserver::fault::Subject;
use lockkeeper_testserver::machine::Machine;
use lockkeeper_testserver::{Fault, Op, When};

use super::{Layout, Queue, client, drain, put, queue, server, take, write, written};
use crate::cancellation::dropped_anywhere;
use crate::fixture::WRITTEN;
use crate::limit::within;
use crate::sample::sampled;
use crate::server_fixture::{LOCK, children};

/// What strikes at a request.
#[derive(Clone, Copy, Debug)]
enum Strike {
    Drop(Fault),
    /// The session ends before the request is applied, or after, and it is not answered.
    Expire(Fault),
    /// The connection breaks, and the request is applied when the client has gone on.
    Late,
}

/// How many cases run at a time.
const SIDE_BY_SIDE: usize = 8;

/// Only seen.
const DELAY: Fault = Fault::DelayRequest(Duration::ZERO);

const STRIKES: [Strike; 5] = [
    Strike::Drop(Fault::DropConnectionBefore),
    Strike::Drop(Fault::DropConnectionAfter),
    Strike::Expire(Fault::HoldRequest),
    Strike::Expire(Fault::DropReply),
    Strike::Late,
];

/// What is known of each value after its put.
type Puts = BTreeMap<String, Outcome>;

/// Puts, takes, gives up, and does.
async fn work(queue: Queue) -> Puts {
    let mut puts = Puts::new();
    let outcome = |put: Result<(), Error>| put.map_or_else(|error| error.outcome(), |()| Outcome::Applied);
    for value in ["a", "b"] {
        puts.insert(value.to_owned(), outcome(queue.put(&value.to_owned()).await));
    }
    let both = ["c".to_owned(), "d".to_owned()];
    let put_all = outcome(queue.put_all(&both).await);
    puts.extend(both.map(|value| (value, put_all)));
    for is_done in [false, true, true] {
        match queue.try_take().await {
            // The drain finds what is not done.
            Ok(Some(item)) if is_done => drop(write(item).await),
            Ok(_) | Err(_) => {}
        }
    }
    puts
}

/// The number of requests of each kind.
async fn requests(layout: Layout) -> BTreeMap<String, (Op, u64)> {
    let server_fixture = server().await;
    let queue = layout.queue(&client(&server_fixture).await);
    let session = server_fixture.sessions_of_actor()[0];
    let transcript = server_fixture.server.transcript();
    work(queue).await;
    let mut counts = BTreeMap::new();
    for passed in transcript.passed().into_iter().filter(|passed| passed.session == session) {
        if let Subject::Request(op) = passed.subject
            && op != Op::Ping
        {
            counts.entry(format!("{op:?}")).or_insert((op, 0)).1 += 1;
        }
    }
    counts
}

async fn strike(layout: Layout, op: Op, nth: u64, strike: Strike) {
    let case = format!("{layout:?}: {strike:?} at {op:?} {nth}");
    let server_fixture = server().await;
    let manager = client(&server_fixture).await;
    let session = server_fixture.sessions_of_actor()[0];
    let fault = match strike {
        Strike::Drop(fault) | Strike::Expire(fault) => fault,
        Strike::Late => Fault::HoldRequest,
    };
    let armed = server_fixture.server.fault(When::op(op).session(session).nth(nth), fault);
    let mut working = tokio::spawn(work(layout.queue(&manager)));
    let ended = tokio::select! {
        biased;
        () = armed.hit() => None,
        puts = &mut working => Some(puts.unwrap()),
    };
    // Also if all calls have ended: a request in the background may be struck still.
    match strike {
        Strike::Drop(_) => {}
        Strike::Expire(_) => {
            server_fixture.server.expire(session);
            armed.release();
        }
        Strike::Late if ended.is_none() => {
            let back = server_fixture.server.fault(When::connect().session(session), DELAY);
            server_fixture.server.drop_connections();
            within(&case, back.hit()).await.unwrap();
            server_fixture.round_trip_of_rival().await.unwrap();
            armed.release();
        }
        Strike::Late => armed.release(),
    }
    let puts = match ended {
        Some(puts) => puts,
        None => within(&case, working).await.unwrap().unwrap(),
    };
    // Until no worker of the actor claims an item, in the session that it has still.
    let items = |machine: &Machine| children(machine, layout.items()).len();
    let drained = async {
        while server_fixture.server.inspect(items) > 0 {
            drain(&layout.queue(&server_fixture.rival)).await;
        }
    };
    within(&case, drained).await.unwrap();
    let written = written(&server_fixture);
    for (value, outcome) in puts {
        let count = written.iter().filter(|one| **one == value).count();
        let is_right = match outcome {
            Outcome::Applied => count == 1,
            Outcome::NotApplied => count == 0,
            Outcome::Unknown => count <= 1,
        };
        assert!(is_right, "{case}: {value} is {outcome:?} and was done {count} times");
    }
}

async fn every_item_is_done_once(layout: Layout) {
    let requests = requests(layout).await.into_values();
    let requests = requests.flat_map(|(op, count)| (1..=count).map(move |nth| (op, nth)));
    let cases: Vec<_> = requests.flat_map(|request| STRIKES.map(|one| (request, one))).collect();
    assert!(cases.len() > 50, "{}", cases.len());
    let cases = sampled(cases);
    // Each waits most of the time.
    let struck = stream::iter(cases).map(|((op, nth), one)| strike(layout, op, nth, one));
    struck.buffer_unordered(SIDE_BY_SIDE).collect::<()>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_item_is_done_once_under_every_fault_at_every_request() {
    every_item_is_done_once(Layout::Own).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_item_of_curator_is_done_once_under_every_fault_at_every_request() {
    every_item_is_done_once(Layout::Curator).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_item_of_kazoo_is_done_once_under_every_fault_at_every_request() {
    every_item_is_done_once(Layout::Kazoo).await;
}

#[tokio::test]
async fn an_item_whose_session_ends_is_done_by_another_and_by_no_other() {
    let server_fixture = server().await;
    let (here, there) = (queue(&client(&server_fixture).await), queue(&server_fixture.rival));
    put(&there, &["a"]).await;
    let item = take(&here).await;
    assert!(server_fixture.server.expire(server_fixture.sessions_of_actor()[0]));
    let again = take(&there).await;
    assert!(again.fencing_token() > item.fencing_token());
    assert_eq!(again.attempts(), 2);
    write(again).await.unwrap();
    within("the loss", item.lost()).await.unwrap();
    let refused = write(item).await.unwrap_err();
    assert!(refused.is_lost(), "{refused}");
    assert_eq!(written(&server_fixture), ["a"]);
}

#[tokio::test]
async fn a_done_whose_session_ends_before_its_answer_says_whether_it_is_applied() {
    for (fault, is_committed) in [(Fault::DropReply, true), (Fault::DropConnectionBefore, false)] {
        let server_fixture = server().await;
        let manager = client(&server_fixture).await;
        let (here, there) = (queue(&manager), queue(&server_fixture.rival));
        put(&there, &["a"]).await;
        let item = take(&here).await;
        let session = server_fixture.sessions_of_actor()[0];
        let when = When::op(Op::Multi).path(&format!("{}/*", super::ITEMS)).session(session).always();
        let lost = server_fixture.server.fault(when, fault);
        let done = tokio::spawn(write(item));
        within("the transaction", lost.hit()).await.unwrap();
        assert!(server_fixture.server.expire(session));
        let done = within("the outcome", done).await.unwrap().unwrap();
        match done {
            Ok(()) => assert!(is_committed),
            Err(error) => assert!(error.is_lost() && !error.outcome_unknown() && !is_committed, "{error}"),
        }
        drain(&there).await;
        assert_eq!(written(&server_fixture), ["a"], "{fault:?}");
    }
}

#[tokio::test]
async fn a_put_whose_answer_is_lost_puts_once() {
    for fault in [Fault::DropConnectionAfter, Fault::DropConnectionBefore] {
        let server_fixture = server().await;
        let queue = queue(&client(&server_fixture).await);
        put(&queue, &["a"]).await;
        let session = server_fixture.sessions_of_actor()[0];
        let when = When::op(Op::Multi).path(&format!("{}/*", super::ITEMS)).session(session);
        let lost = server_fixture.server.fault(when, fault);
        put(&queue, &["b"]).await;
        assert_eq!((lost.hits(), server_fixture.server.inspect(super::items).len()), (1, 2), "{fault:?}");
    }
}

#[tokio::test]
async fn a_claim_of_an_item_that_was_claimed_since_its_read_is_refused() {
    let server_fixture = server().await;
    let (here, there) = (queue(&client(&server_fixture).await), queue(&server_fixture.rival));
    put(&there, &["a"]).await;
    let session = server_fixture.sessions_of_actor()[0];
    let when = When::op(Op::Multi).path(&format!("{}/*", super::ITEMS)).session(session);
    let held = server_fixture.server.fault(when, Fault::HoldRequest);
    let taking = tokio::spawn(async move { here.try_take().await.unwrap() });
    within("the claim", held.hit()).await.unwrap();
    let item = take(&there).await;
    held.release();
    assert!(within("the refusal", taking).await.unwrap().unwrap().is_none(), "two have one item");
    write(item).await.unwrap();
}

#[tokio::test]
async fn a_worker_whose_node_is_deleted_by_hand_writes_nothing() {
    let server_fixture = server().await;
    let (here, there) = (queue(&client(&server_fixture).await), queue(&server_fixture.rival));
    put(&there, &["a"]).await;
    let item = take(&here).await;
    assert!(server_fixture.server.delete_node(item.hold().path()));
    let again = take(&there).await;
    let refused = write(item).await.unwrap_err();
    assert!(refused.is_lost(), "{refused}");
    write(again).await.unwrap();
    assert_eq!(written(&server_fixture), ["a"]);
}

#[tokio::test]
async fn a_taker_waits_longer_than_one_request_may_take() {
    let server_fixture = server().await;
    let manager = client(&server_fixture).await.with_operation_timeout(Duration::from_millis(100)).unwrap();
    let session = server_fixture.sessions_of_actor()[0];
    let unanswered =
        server_fixture.server.fault(When::op(Op::Create2).session(session).always(), Fault::HoldReply);
    let taking = tokio::spawn({
        let queue = queue(&manager);
        async move { queue.take().await }
    });
    within("a create", unanswered.hit()).await.unwrap();
    // As long as that call may take.
    let error = manager.znodes().create("/other", b"", lockkeeper::znodes::CreateMode::Persistent).await;
    assert!(error.unwrap_err().outcome_unknown());
    assert!(!taking.is_finished());
    unanswered.disarm();
    unanswered.release();
    put(&queue(&server_fixture.rival), &["a"]).await;
    assert_eq!(within("an item", taking).await.unwrap().unwrap().unwrap().value(), "a");
}

#[tokio::test]
async fn calls_dropped_anywhere_under_any_fault_leave_no_worker() {
    dropped_anywhere(&Plain, |actor| calls(actor, Layout::Own)).await;
}

#[tokio::test]
async fn calls_dropped_anywhere_under_any_fault_leave_no_claim_in_the_layout_of_curator() {
    dropped_anywhere(&Plain, |actor| calls(actor, Layout::Curator)).await;
}

#[tokio::test]
async fn calls_dropped_anywhere_under_any_fault_leave_no_claim_in_the_layout_of_kazoo() {
    dropped_anywhere(&Plain, |actor| calls(actor, Layout::Kazoo)).await;
}

async fn calls(actor: ConnectionManager, layout: Layout) {
    let queue = layout.queue(&actor);
    let _ = queue.put(&"a".to_owned()).await;
    if let Ok(Some(item)) = queue.try_take().await {
        // The item may be lost by now.
        let _ = item.done().await;
    }
}

#[tokio::test]
async fn a_queue_goes_on_when_another_client_changes_or_deletes_the_records() {
    let server_fixture = server().await;
    let queue = queue(&client(&server_fixture).await);
    let records = format!("{LOCK}/records");
    for is_deleted in [true, false] {
        put(&queue, &["a", "b"]).await;
        // From here on a worker is kept for the next call.
        write(take(&queue).await).await.unwrap();
        for name in server_fixture.server.inspect(|machine| children(machine, &records)) {
            let (record, rival) = (format!("{records}/{name}"), server_fixture.rival.znodes());
            match is_deleted {
                true => assert!(rival.delete(&record).await.unwrap()),
                false => drop(rival.write(&record, b"", Version::Any).await.unwrap()),
            }
        }
        within("a put", queue.put(&"c".to_owned())).await.unwrap().unwrap();
        drain(&queue).await;
    }
    assert_eq!(written(&server_fixture), ["a", "a", "b", "b", "c", "c"]);
}

#[tokio::test]
async fn the_writes_of_a_done_cannot_replace_the_check_of_the_claim() {
    let server_fixture = server().await;
    let manager = client(&server_fixture).await;
    let (here, there) = (queue(&manager), queue(&server_fixture.rival));
    put(&there, &["a"]).await;
    let item = take(&here).await;
    assert!(server_fixture.server.delete_node(item.hold().path()));
    let again = take(&there).await;
    let path = format!("{WRITTEN}/late-");
    let refused = item.done_with(|_| manager.txn().create_sequential(path, b"")).await.unwrap_err();
    assert!(refused.is_lost(), "{refused}");
    write(again).await.unwrap();
    assert_eq!(written(&server_fixture), ["a"]);
}
