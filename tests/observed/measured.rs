//! The metrics.

use std::time::Duration;

use futures::FutureExt;
use lockkeeper::discovery::{Instance, Strategy};
use lockkeeper::error::Refusal;
use lockkeeper::znodes::{CreateMode, Version};
use lockkeeper::{
    Barrier, ConnectionManager, Discovery, Election, Mutex, NodeView, OnceCell, Registration, RwLock,
    Schedule, Semaphore, metrics as names,
};
use lockkeeper_tests::{Timing, eventually};
use lockkeeper_testserver::{ErrorCode, Fault, Op, When};

use crate::recorded::{Recorded, recorder};
use crate::seen::{Entry, Seen};
use crate::{SESSION, connected};

pub(crate) async fn all_is_back_to_zero(recorded: &Recorded, manager: ConnectionManager) {
    recorded.becomes(names::PENDING_DELETES, 0.0).await;
    manager.shutdown().await.unwrap();
    for series in recorded.series() {
        if series.starts_with(names::WAITING) || series.starts_with(names::HELD) {
            assert_eq!(recorded.value(&series), 0.0, "{series}");
        }
    }
}

/// Waits for a held mutex until its limit, and is measured so. How many waits that took: on a machine that
/// pauses between the limit and the timer of a wait, less than the limit is measured.
pub(crate) async fn times_out(recorded: &Recorded, mutex: &Mutex, limit: Duration) -> usize {
    let timed_out = async || {
        assert!(mutex.acquire_timeout(limit).await.unwrap_err().is_timeout());
        let waits = recorded.waits("timeout");
        (*waits.last().unwrap() >= limit.as_secs_f64()).then_some(waits.len())
    };
    eventually("a wait is measured until its limit", Timing::settle(), timed_out).await.unwrap()
}

#[tokio::test]
async fn waits_and_holds_are_measured_by_their_results() {
    let (recorder, recorded) = recorder();
    let _recorder = metrics::set_default_local_recorder(&recorder);
    let (_server, manager) = connected().await;
    let mutex = Mutex::new(&manager, "/locks/measured").unwrap();

    mutex.acquire().await.unwrap().release().await.unwrap();
    let guard = mutex.acquire().await.unwrap();
    recorded.becomes("lockkeeper_held recipe=mutex", 1.0).await;
    let waiter = tokio::spawn({
        let mutex = mutex.clone();
        async move { mutex.acquire().await.map(drop) }
    });
    recorded.becomes("lockkeeper_waiting recipe=mutex", 1.0).await;
    let timeouts = times_out(&recorded, &mutex, Duration::from_millis(30)).await;
    assert!(mutex.try_acquire().await.unwrap().is_none());
    waiter.abort();
    assert!(waiter.await.unwrap_err().is_cancelled());
    drop(guard);

    assert_eq!(recorded.waited(), [2, 1, timeouts, 1, 0]);
    // It began before a wait that timed out, and ended after it.
    let cancelled = recorded.waits("cancelled");
    assert!(cancelled[0] >= 0.03, "{cancelled:?}");
    assert_eq!(recorded.held(), [1, 1, 0, 0]);
    all_is_back_to_zero(&recorded, manager).await;
}

#[tokio::test]
async fn requests_are_measured_by_kind_and_outcome_and_their_bytes_are_counted() {
    let (recorder, recorded) = recorder();
    let _recorder = metrics::set_default_local_recorder(&recorder);
    let (server, manager) = connected().await;
    let sent = |request: &str| recorded.value(&format!("{} request={request}", names::SENT_BYTES_TOTAL));
    let received =
        |request: &str| recorded.value(&format!("{} request={request}", names::RECEIVED_BYTES_TOTAL));
    let times = |request: &str, outcome: &str| {
        recorded.samples(&format!("{} request={request} outcome={outcome}", names::REQUEST_SECONDS))
    };
    assert_eq!((sent("create"), received("read")), (0.0, 0.0), "shown from the start");
    let znodes = manager.znodes();
    znodes.create("/measured", "12345", CreateMode::Persistent).await.unwrap();
    assert_eq!(sent("create"), 5.0);
    let slow = When::op(Op::GetData).path("/measured");
    let slow = server.fault(slow, Fault::DelayReply(Duration::from_millis(30)));
    znodes.read("/measured").await.unwrap();
    assert_eq!((slow.hits(), received("read")), (1, 5.0));
    let [time] = times("read", "done")[..] else { panic!("{:?}", times("read", "done")) };
    assert!(time >= 0.03, "{time}");
    znodes.write("/measured", "123", Version::Any).await.unwrap();
    assert_eq!((sent("write"), times("write", "done").len()), (3.0, 1));
    znodes.create("/measured/child", "", CreateMode::Persistent).await.unwrap();
    znodes.children("/measured").await.unwrap();
    assert_eq!(received("children"), 5.0);
    let refused = server.fault(When::op(Op::GetData).path("/measured"), Fault::Refuse(ErrorCode::NoAuth));
    znodes.read("/measured").await.unwrap_err();
    assert_eq!((refused.hits(), times("read", "refused").len()), (1, 1));
    let broken = server.fault(When::op(Op::SetData).path("/measured"), Fault::DropConnectionBefore);
    znodes.write("/measured", "1", Version::Any).await.unwrap_err();
    assert_eq!((broken.hits(), times("write", "unanswered").len(), sent("write")), (1, 1, 4.0));
    all_is_back_to_zero(&recorded, manager).await;
}

#[tokio::test]
async fn views_their_changes_and_their_comparisons_are_counted() {
    let (recorder, recorded) = recorder();
    let _recorder = metrics::set_default_local_recorder(&recorder);
    let (server, manager) = connected().await;
    let view = NodeView::new(&manager, "/config").unwrap();
    view.ready().await.unwrap();
    recorded.becomes(names::VIEWS, 1.0).await;
    assert_eq!(recorded.value(names::VIEW_COMPARISONS_TOTAL), 1.0);
    manager.znodes().create("/config", "1", CreateMode::Persistent).await.unwrap();
    view.sync().await.unwrap();
    assert_eq!(recorded.value(names::VIEW_CHANGES_TOTAL), 1.0);
    server.drop_connections();
    // One for the next connection, and more if that breaks as well.
    let compared = || async { (recorded.value(names::VIEW_COMPARISONS_TOTAL) >= 2.0).then_some(()) };
    eventually("another comparison", Timing::event(), compared).await.unwrap();
    drop(view);
    recorded.becomes(names::VIEWS, 0.0).await;
    assert_eq!(recorded.value(names::VIEW_CHANGES_TOTAL), 1.0);
}

#[tokio::test]
async fn a_node_that_is_no_instance_is_counted_and_logged() {
    let (recorder, recorded) = recorder();
    let _recorder = metrics::set_default_local_recorder(&recorder);
    let (seen, _subscriber) = Seen::begin();
    let (_server, manager) = connected().await;
    let discovery = Discovery::new(&manager, "/services").unwrap();
    let balancer = discovery.balancer("web", Strategy::RoundRobin).unwrap();
    balancer.view().ready().await.unwrap();
    assert!(balancer.choose().is_none());
    assert_eq!(recorded.value(names::MISSING_INSTANCES_TOTAL), 1.0);
    manager.znodes().create("/services/web/bad", "secret", CreateMode::Persistent).await.unwrap();
    let registration = discovery.register(Instance::new("web", "10.0.0.7", 8080)).unwrap();
    registration.registered().await.unwrap();
    balancer.view().sync().await.unwrap();
    assert_eq!(recorded.value(names::UNREADABLE_INSTANCES_TOTAL), 1.0);
    let logged = seen.events("a node is no instance of its service");
    assert_eq!(logged.iter().map(|entry| entry.field("path")).collect::<Vec<_>>(), ["/services/web/bad"]);
    assert!(!format!("{:?}", seen.all()).contains("secret"));
    assert!(balancer.choose().is_some());
    assert_eq!(recorded.value(names::MISSING_INSTANCES_TOTAL), 1.0);
    assert_eq!(recorded.value(names::REGISTRATIONS), 1.0);
    registration.release().await.unwrap();
    recorded.becomes(names::REGISTRATIONS, 0.0).await;
}

#[tokio::test]
async fn a_refused_write_whose_call_has_ended_is_logged() {
    let (seen, _subscriber) = Seen::begin();
    let (server, manager) = connected().await;
    let registration = Registration::register(&manager, "/workers/7", "one").unwrap();
    registration.registered().await.unwrap();
    let when = When::op(Op::SetData).path("/workers/7");
    let refused = server.fault(when, Fault::Refuse(ErrorCode::NoAuth));
    assert!(registration.set_data("secret").now_or_never().is_none());
    let logged = async || seen.events("the data of a registration is refused").pop();
    let logged = eventually("the line", Timing::event(), logged).await.unwrap();
    assert_eq!(
        (logged.field("path"), logged.field("refusal")),
        ("/workers/7", &*Refusal::NoAuth.to_string())
    );
    assert_eq!((refused.hits(), logged.level.as_str()), (1, "WARN"));
    assert!(!format!("{:?}", seen.all()).contains("secret"));
    registration.release().await.unwrap();
}

#[tokio::test]
async fn registrations_are_counted_and_those_of_their_nodes_that_end_before_a_release() {
    let (recorder, recorded) = recorder();
    let _recorder = metrics::set_default_local_recorder(&recorder);
    let (server, manager) = connected().await;
    let registration = Registration::register(&manager, "/workers/7", "").unwrap();
    registration.registered().await.unwrap();
    assert_eq!(
        (recorded.value(names::REGISTRATIONS), recorded.value(names::REGISTRATIONS_ENDED_TOTAL)),
        (1.0, 0.0)
    );
    assert!(server.delete_node("/workers/7"));
    recorded.becomes(names::REGISTRATIONS_ENDED_TOTAL, 1.0).await;
    recorded.becomes(names::REGISTRATIONS, 1.0).await;
    let owner = server.inspect(|machine| machine.tree().node("/workers/7").unwrap().stat().ephemeral_owner);
    assert!(server.expire(owner));
    recorded.becomes(names::REGISTRATIONS_ENDED_TOTAL, 2.0).await;
    recorded.becomes(names::REGISTRATIONS, 1.0).await;
    registration.release().await.unwrap();
    recorded.becomes(names::REGISTRATIONS, 0.0).await;
    assert_eq!(recorded.value(names::REGISTRATIONS_ENDED_TOTAL), 2.0);
}

#[tokio::test]
async fn a_hold_that_becomes_another_ends_as_exchanged() {
    let (recorder, recorded) = recorder();
    let _recorder = metrics::set_default_local_recorder(&recorder);
    let (_server, manager) = connected().await;

    let lock = RwLock::new(&manager, "/locks/shared").unwrap();
    let writer = lock.write().await.unwrap();
    let reader = writer.downgrade().await.unwrap();
    assert_eq!(recorded.value("lockkeeper_held recipe=write"), 0.0);
    assert_eq!(recorded.value("lockkeeper_held recipe=read"), 1.0);
    reader.release().await.unwrap();
    let semaphore = Semaphore::new(&manager, "/semaphores/two", 2).unwrap();
    semaphore.acquire_many(2).await.unwrap().release().await.unwrap();

    for (recipe, outcome) in [
        ("write", "exchanged"),
        ("read", "released"),
        ("semaphore_turn", "exchanged"),
        ("semaphore", "released"),
    ] {
        let holds = recorded.samples(&format!("lockkeeper_hold_seconds recipe={recipe} outcome={outcome}"));
        assert_eq!(holds.len(), 1, "{recipe} {outcome}");
    }
    all_is_back_to_zero(&recorded, manager).await;
}

#[tokio::test]
async fn a_slot_and_an_initialiser_are_measured_by_their_own_names() {
    let (recorder, recorded) = recorder();
    let _recorder = metrics::set_default_local_recorder(&recorder);
    let (_server, manager) = connected().await;
    let schedule = Schedule::new(&manager, "/schedules/measured", Duration::from_millis(10)).unwrap();
    let slot = schedule.due().await.unwrap();
    recorded.becomes("lockkeeper_held recipe=schedule", 1.0).await;
    slot.done("").await.unwrap();

    let cell = OnceCell::new(&manager, "/cells/measured").unwrap();
    let init = async || {
        recorded.becomes("lockkeeper_held recipe=once_cell", 1.0).await;
        b"value".to_vec()
    };
    cell.get_or_init(init).await.unwrap();
    cell.get_or_init(async || panic!("initialised twice")).await.unwrap();
    for recipe in ["schedule", "once_cell"] {
        let held = recorded.samples(&format!("lockkeeper_hold_seconds recipe={recipe} outcome=released"));
        assert_eq!(held.len(), 1, "{recipe}");
        recorded.becomes(&format!("lockkeeper_held recipe={recipe}"), 0.0).await;
    }
    all_is_back_to_zero(&recorded, manager).await;
}

#[tokio::test]
async fn a_term_of_either_layout_is_measured_as_an_election() {
    let (recorder, recorded) = recorder();
    let _recorder = metrics::set_default_local_recorder(&recorder);
    let (_server, manager) = connected().await;

    let latch = Election::new(&manager, "/elections/latch", "here").unwrap();
    let selector = Election::in_selector_layout(&manager, "/elections/selector", "here").unwrap();
    for election in [latch, selector] {
        let leadership = election.campaign().await.unwrap();
        recorded.becomes("lockkeeper_held recipe=election", 1.0).await;
        leadership.resign().await.unwrap();
    }

    let terms = recorded.samples("lockkeeper_hold_seconds recipe=election outcome=released");
    assert_eq!(terms.len(), 2);
    all_is_back_to_zero(&recorded, manager).await;
}

#[tokio::test]
async fn a_wait_for_a_barrier_is_measured_and_is_a_span() {
    let (recorder, recorded) = recorder();
    let _recorder = metrics::set_default_local_recorder(&recorder);
    let (seen, _subscriber) = Seen::begin();
    let (_server, manager) = connected().await;
    let barrier = Barrier::new(&manager, "/barriers/measured").unwrap();
    barrier.set().await.unwrap();
    assert!(barrier.wait_timeout(Duration::ZERO).await.unwrap_err().is_timeout());
    let waiter = tokio::spawn({
        let barrier = barrier.clone();
        async move { barrier.wait().await }
    });
    recorded.becomes("lockkeeper_waiting recipe=barrier", 1.0).await;
    barrier.remove().await.unwrap();
    waiter.await.unwrap().unwrap();

    let waits =
        |outcome| recorded.samples(&format!("lockkeeper_wait_seconds recipe=barrier outcome={outcome}"));
    assert_eq!(["granted", "timeout"].map(|outcome| waits(outcome).len()), [1, 1]);
    let spans = seen.spans("deleted");
    let fields = |span: &Entry| ["path", "recipe", "outcome"].map(|field| span.field(field).to_owned());
    let ended = |outcome: &str| ["/barriers/measured", "barrier", outcome].map(str::to_owned);
    assert_eq!(spans.iter().map(fields).collect::<Vec<_>>(), ["timeout", "granted"].map(ended));
    // A wait for a node that belongs to no recipe is not measured.
    manager.znodes().deleted("/barriers/measured").await.unwrap();
    assert_eq!(seen.spans("deleted").len(), 2);
    all_is_back_to_zero(&recorded, manager).await;
}

#[tokio::test]
async fn losses_are_counted_by_their_reason() {
    let (recorder, recorded) = recorder();
    let _recorder = metrics::set_default_local_recorder(&recorder);
    let (server, manager) = connected().await;
    let mutex = Mutex::new(&manager, "/locks/lost").unwrap();

    let guard = mutex.acquire().await.unwrap();
    assert!(server.delete_node(guard.path()));
    guard.lost().await;
    assert_eq!(recorded.value("lockkeeper_lost_total recipe=mutex reason=node_deleted"), 1.0);
    assert_eq!(recorded.value("lockkeeper_held recipe=mutex"), 0.0, "though the guard is not dropped yet");
    drop(guard);

    let guard = mutex.acquire().await.unwrap();
    server.drop_connections();
    recorded.becomes(names::RECONNECTS_TOTAL, 1.0).await;
    assert!(guard.is_valid());
    assert!(server.expire(server.sessions()[0]));
    guard.lost().await;
    recorded.becomes("lockkeeper_sessions_expired_total reason=session_expired", 1.0).await;
    assert_eq!(recorded.value("lockkeeper_lost_total recipe=mutex reason=session_expired"), 1.0);
    drop(guard);

    assert_eq!(recorded.held(), [0, 0, 2, 0]);
    mutex.acquire().await.unwrap().release().await.unwrap();
    all_is_back_to_zero(&recorded, manager).await;
    assert_eq!(recorded.value("lockkeeper_sessions_expired_total reason=closed"), 0.0);
}

#[tokio::test]
async fn deletes_in_the_background_are_counted_until_they_are_done() {
    let (recorder, recorded) = recorder();
    let _recorder = metrics::set_default_local_recorder(&recorder);
    let (server, manager) = connected().await;
    let guard = Mutex::new(&manager, "/locks/dropped").unwrap().acquire().await.unwrap();
    server.freeze();
    drop(guard);
    assert_eq!(recorded.value(names::PENDING_DELETES), 1.0);
    server.thaw();
    all_is_back_to_zero(&recorded, manager).await;
}

#[tokio::test]
async fn the_margin_of_the_lease_is_measured_while_something_is_held() {
    let (recorder, recorded) = recorder();
    let _recorder = metrics::set_default_local_recorder(&recorder);
    let (_server, manager) = connected().await;
    let guard = Mutex::new(&manager, "/locks/kept").unwrap().acquire().await.unwrap();
    let margins = async || {
        let margins = recorded.samples(names::LEASE_MARGIN_SECONDS);
        (margins.len() >= 2).then_some(margins)
    };
    let margins = eventually("the lease is renewed", Timing::settle(), margins).await.unwrap();
    assert!(margins.iter().all(|margin| *margin > 0.0 && *margin < SESSION.as_secs_f64()), "{margins:?}");
    guard.release().await.unwrap();
    all_is_back_to_zero(&recorded, manager).await;
}
