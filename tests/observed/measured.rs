//! The metrics.

use std::path::Path;
use std::time::Duration;

use lockkeeper::{ConnectionManager, Election, Mutex, RwLock, Semaphore, metrics as names};
use lockkeeper_tests::{Timing, eventually};

use crate::recorded::{Recorded, recorder};
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

#[tokio::test]
async fn waits_and_holds_are_measured_by_their_results() {
    let (recorder, recorded) = recorder();
    let _recorder = metrics::set_default_local_recorder(&recorder);
    let (_server, manager) = connected().await;
    let mutex = Mutex::new(&manager, "/locks/measured").unwrap();

    mutex.acquire().await.unwrap().release().await.unwrap();
    let guard = mutex.acquire().await.unwrap();
    recorded.becomes("lockkeeper_held recipe=mutex", 1.0).await;
    assert!(mutex.acquire_timeout(Duration::from_millis(30)).await.unwrap_err().is_timeout());
    assert!(mutex.try_acquire().await.unwrap().is_none());
    let waiter = tokio::spawn({
        let mutex = mutex.clone();
        async move { mutex.acquire().await.map(drop) }
    });
    recorded.becomes("lockkeeper_waiting recipe=mutex", 1.0).await;
    waiter.abort();
    assert!(waiter.await.unwrap_err().is_cancelled());
    drop(guard);

    assert_eq!(recorded.waited(), [2, 1, 1, 1, 0]);
    let timeouts = recorded.waits("timeout");
    assert!(timeouts[0] >= 0.03, "{timeouts:?}");
    assert_eq!(recorded.held(), [1, 1, 0, 0]);
    all_is_back_to_zero(&recorded, manager).await;
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

#[tokio::test]
async fn the_page_has_every_metric_and_every_metric_is_described() {
    let (recorder, recorded) = recorder();
    let _recorder = metrics::set_default_local_recorder(&recorder);
    names::describe();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("docs/observability.md");
    let page = std::fs::read_to_string(page).unwrap();
    let all = [
        names::WAIT_SECONDS,
        names::HOLD_SECONDS,
        names::WAITING,
        names::HELD,
        names::LOST_TOTAL,
        names::SESSIONS_EXPIRED_TOTAL,
        names::RECONNECTS_TOTAL,
        names::PENDING_DELETES,
        names::LEASE_MARGIN_SECONDS,
    ];
    for name in all {
        // A metric is shown only after its first record, and only with its own kind and description.
        metrics::counter!(name).increment(0);
        metrics::gauge!(name).increment(0.0);
        metrics::histogram!(name).record(0.0);
    }
    let described = recorded.described();
    for name in all {
        assert!(page.contains(&format!("`{name}`")), "docs/observability.md lacks {name}");
        assert!(described.contains(name), "{name} is not described");
    }
}
