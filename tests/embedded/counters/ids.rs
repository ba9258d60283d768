//! Ids from blocks.

use std::collections::BTreeSet;

use lockkeeper::{ConnectionManager, CounterError, ErrorKind, IdBlocks};
use lockkeeper_testserver::Fault;

use super::{COUNTER, change, client, counter};
use crate::limit::within;
use crate::server_fixture::ServerFixture;

fn ids(manager: &ConnectionManager, size: u32) -> IdBlocks {
    IdBlocks::new(manager, COUNTER, size).unwrap()
}

#[tokio::test]
async fn blocks_of_no_ids_are_refused() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let refused = IdBlocks::new(&server_fixture.rival, COUNTER, 0).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Misuse, "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_id_is_given_out_twice_by_tasks_processes_and_those_that_crash() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let changes = server_fixture.server.fault(change().nth(5), Fault::DropConnectionAfter);
    let mut tasks = Vec::new();
    for process in 0..4 {
        let manager = client(&server_fixture).await;
        let ids = ids(&manager, [7, 100][process % 2]);
        for _ in 0..3 {
            let ids = ids.clone();
            tasks.push(tokio::spawn(async move {
                let mut own = Vec::new();
                for _ in 0..200 {
                    own.push(ids.next().await.unwrap());
                }
                own
            }));
        }
        if process == 3 {
            // The rest of its block is lost.
            manager.shutdown().await.unwrap();
        }
    }
    let mut all = BTreeSet::new();
    for task in tasks {
        let Ok(own) = within("the ids", task).await.unwrap() else { continue };
        assert!(own.is_sorted_by(|earlier, later| earlier < later), "{own:?}");
        for id in own {
            assert!(all.insert(id), "{id} twice");
        }
    }
    assert_eq!((changes.hits(), all.len() >= 9 * 200), (1, true));
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
