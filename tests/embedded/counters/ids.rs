//! Ids from blocks.

use std::collections::BTreeSet;
use std::sync::Arc;

use lockkeeper::error::{CounterError, ErrorKind, IdBlocksError};
use lockkeeper::{ConnectionManager, IdBlocks};
use lockkeeper_tests::{Timing, eventually};
use lockkeeper_testserver::Fault;
use parking_lot::Mutex;
use tokio::runtime::Builder;

use super::{COUNTER, change, client, counter, writers};
use crate::limit::within;
use crate::server_fixture::{SESSION, ServerFixture, builder};

fn ids(manager: &ConnectionManager, size: u32) -> IdBlocks {
    IdBlocks::new(manager, COUNTER, size).unwrap()
}

#[tokio::test]
async fn blocks_of_no_ids_are_refused() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let refused = IdBlocks::new(&server_fixture.rival, COUNTER, 0).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Misuse, "{refused}");
}

/// Draws ids, and records each as soon as it is drawn.
async fn draw(ids: IdBlocks, count: usize, drawn: Arc<Mutex<Vec<i64>>>) {
    for _ in 0..count {
        let id = ids.next().await.unwrap();
        drawn.lock().push(id);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_id_is_given_out_twice_by_tasks_processes_and_those_that_crash() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let changes = server_fixture.server.fault(change().nth(5), Fault::DropConnectionAfter);
    let (mut all_drawn, mut tasks) = (Vec::new(), Vec::new());
    let mut drawn = || {
        let drawn = Arc::new(Mutex::new(Vec::new()));
        all_drawn.push(Arc::clone(&drawn));
        drawn
    };
    // Its tasks end where they are, and nothing closes its session.
    let crashing = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let servers = server_fixture.server.connect_string();
    let manager = crashing
        .spawn(async move { builder(&servers).session_timeout(SESSION * 10).connect().await.unwrap() });
    let manager = manager.await.unwrap();
    let ids_of_crashing = ids(&manager, 7);
    let crashed = drawn();
    for _ in 0..3 {
        crashing.spawn(draw(ids_of_crashing.clone(), usize::MAX, Arc::clone(&crashed)));
    }
    for process in 0..3 {
        let ids = ids(&client(&server_fixture).await, [7, 100][process % 2]);
        for _ in 0..3 {
            tasks.push(tokio::spawn(draw(ids.clone(), 200, drawn())));
        }
    }
    let draws = async || (crashed.lock().len() >= 50).then_some(());
    eventually("the process that crashes draws", Timing::settle(), draws).await.unwrap();
    crashing.shutdown_background();
    let successor = ids(&client(&server_fixture).await, 7);
    tasks.push(tokio::spawn(draw(successor, 200, drawn())));
    for task in tasks {
        within("the ids", task).await.unwrap().unwrap();
    }
    let mut all = BTreeSet::new();
    for drawn in &all_drawn {
        let own = drawn.lock().clone();
        // Three tasks of the process that crashed share a list.
        let is_sorted = own.is_sorted_by(|earlier, later| earlier < later);
        assert!(is_sorted || Arc::ptr_eq(drawn, &crashed), "{own:?}");
        for id in own {
            assert!(all.insert(id), "{id} twice");
        }
    }
    assert_eq!((changes.hits(), all.len() >= 10 * 200 + 50), (1, true));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_block_is_there_before_the_last_id_is_taken() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let (ids, counter) = (ids(&manager, 100), counter(&server_fixture.rival));
    assert_eq!(ids.next().await.unwrap(), 1);
    for id in 2..=50 {
        assert_eq!(ids.try_next(), Some(id));
    }
    let prefetched = async { while counter.get().await.unwrap() < 200 {} };
    within("the next block", prefetched).await.unwrap();
    let _cut_off = server_fixture.server.fault(change().always(), Fault::HoldRequest);
    for id in 51..=120 {
        assert_eq!(ids.next().await.unwrap(), id);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ids_end_with_the_greatest_number() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    counter(&manager).set(i64::MAX - 2).await.unwrap();
    let ids = ids(&manager, 2);
    assert_eq!(ids.next().await.unwrap(), i64::MAX - 1);
    assert_eq!(ids.next().await.unwrap(), i64::MAX);
    let refused = within("an error", ids.next()).await.unwrap().unwrap_err();
    assert!(matches!(refused.recipe(), Some(CounterError::Overflow { .. })), "{refused}");
}

#[tokio::test]
async fn a_counter_that_is_deleted_or_set_back_gives_no_id_twice_in_one_process() {
    for deletes in [true, false] {
        let server_fixture = ServerFixture::start().await.unwrap();
        let ids = IdBlocks::new(&client(&server_fixture).await, COUNTER, 4).unwrap();
        let mut given = vec![ids.next().await.unwrap(), ids.next().await.unwrap()];
        match deletes {
            true => {
                // A request for the next block may create it again.
                while server_fixture.server.inspect(|machine| machine.tree().node(COUNTER).is_some()) {
                    for writer in server_fixture.server.inspect(writers) {
                        server_fixture.server.delete_node(&format!("{COUNTER}/{writer}"));
                    }
                    server_fixture.server.delete_node(COUNTER);
                }
            }
            false => counter(&server_fixture.rival).set(1).await.unwrap(),
        }
        let refused = loop {
            match within("an id", ids.next()).await.unwrap() {
                Ok(id) => given.push(id),
                Err(error) => break error,
            }
        };
        let Some(IdBlocksError::WentBack { greatest, .. }) = refused.recipe() else { panic!("{refused}") };
        assert_eq!(given, (1..=*greatest).collect::<Vec<_>>());
        // Ids of other processes may follow.
        counter(&server_fixture.rival).set(1_000).await.unwrap();
        assert!(within("an id", ids.next()).await.unwrap().is_err());
    }
}
