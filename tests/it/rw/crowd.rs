//! Many contenders of one process on one read/write lock.

use lockkeeper::{ReadGuard, RwLock};
use lockkeeper_tests::{Match, OpCode, Proxies, Timing, eventually};
use tokio::task::JoinHandle;

use super::{PATH, lock, reading, sent, watches_become, writing};
use crate::support::{behind_proxy, connect, nodes_become};

/// So many readers hold that the client grants by sequence numbers, and watches the directory.
async fn readers_hold(lock: &RwLock, proxies: &Proxies) -> Vec<ReadGuard> {
    let mut held = Vec::new();
    while !proxies
        .log()
        .requests()
        .any(|request| request.op == OpCode::GetData && request.path.as_deref() == Some(PATH))
    {
        held.push(lock.read().await.unwrap());
    }
    held.push(lock.read().await.unwrap());
    held
}

#[tokio::test]
async fn a_reader_behind_a_reader_of_its_process_needs_no_list() {
    let (_ensemble, proxies, manager) = behind_proxy().await;
    let lock = lock(&manager);
    let held = readers_hold(&lock, &proxies).await;
    proxies.clear_log();
    let read = lock.read().await.unwrap();
    assert_eq!(sent(&proxies), [OpCode::Create2]);
    proxies.clear_log();
    read.release().await.unwrap();
    assert_eq!(sent(&proxies), [OpCode::Delete]);
    drop(held);
}

#[tokio::test]
async fn a_writer_hands_off_to_the_readers_of_its_process_with_its_delete() {
    let (ensemble, proxies, manager) = behind_proxy().await;
    let lock = lock(&manager);
    let held = readers_hold(&lock, &proxies).await;
    let writer = writing(&lock);
    nodes_become(&ensemble, PATH, held.len() + 1).await;
    proxies.clear_log();
    drop(held);
    let write = writer.await.unwrap();
    // One list, after the last reader of this process.
    let lists = sent(&proxies).into_iter().filter(|op| *op == OpCode::GetChildren).count();
    assert_eq!(lists, 1, "{:?}", sent(&proxies));

    proxies.clear_log();
    let mut readers: Vec<JoinHandle<ReadGuard>> = Vec::new();
    for waiting in 1..=4 {
        readers.push(reading(&lock));
        nodes_become(&ensemble, PATH, 1 + waiting).await;
    }
    // A reader of another process waits as well, and is granted by the event.
    let other = reading(&super::lock(&connect(&ensemble.connect_string()).await));
    nodes_become(&ensemble, PATH, 6).await;
    proxies.clear_log();
    let token = write.fencing_token();
    write.release().await.unwrap();
    for reader in readers {
        assert!(reader.await.unwrap().fencing_token() > token);
    }
    // A long waiter watches its own node, and removes that watch.
    let but_watches = || {
        let asked = sent(&proxies).into_iter();
        asked.filter(|op| !matches!(op, OpCode::GetData | OpCode::RemoveWatches)).collect::<Vec<_>>()
    };
    let released = eventually("all deletes", Timing::event(), async || {
        Some(but_watches()).filter(|asked| asked.len() >= 5)
    });
    let all = [OpCode::Multi, OpCode::Delete, OpCode::Delete, OpCode::Delete, OpCode::Delete];
    assert_eq!(released.await.unwrap(), all);
    drop(other.await.unwrap());
}

/// The number of readers that the release of a writer checks. The other readers list.
const LET_IN_AT_ONCE: usize = 32;

#[tokio::test]
async fn readers_behind_a_writer_of_their_process_hold_before_its_release_is_answered() {
    let (ensemble, proxies, manager) = behind_proxy().await;
    let lock = lock(&manager);
    let write = lock.write().await.unwrap();
    proxies.clear_log();
    let readers: Vec<_> = (0..LET_IN_AT_ONCE + 3).map(|_| reading(&lock)).collect();
    nodes_become(&ensemble, PATH, 1 + readers.len()).await;
    // The waiters and the holding writer watch their own nodes after a while.
    watches_become(&proxies, 1 + readers.len()).await;

    let answer = proxies.on(Match::new().op(OpCode::Multi).path_contains("__READ__")).hold_reply();
    let releasing = tokio::spawn(write.release());
    answer.triggered().await.unwrap();
    let let_in = || readers.iter().filter(|reader| reader.is_finished()).count();
    let held =
        eventually("readers that hold", Timing::event(), async || (let_in() >= LET_IN_AT_ONCE).then_some(()));
    held.await.unwrap();
    let log = proxies.log();
    let release = log.requests().find(|request| request.parts.iter().any(|(op, _)| *op == OpCode::Delete));
    assert_eq!(release.unwrap().parts.len(), LET_IN_AT_ONCE + 1);
    assert!(let_in() == LET_IN_AT_ONCE && !releasing.is_finished());

    answer.release();
    releasing.await.unwrap().unwrap();
    for reader in readers {
        drop(reader.await.unwrap());
    }
}

#[tokio::test]
async fn a_reader_is_not_granted_before_an_earlier_writer_of_another_process() {
    let (ensemble, proxies, manager) = behind_proxy().await;
    let other = lock(&connect(&ensemble.connect_string()).await);
    let lock = lock(&manager);
    drop(readers_hold(&lock, &proxies).await);
    nodes_become(&ensemble, PATH, 0).await;
    let write = lock.write().await.unwrap();
    let stranger = writing(&other);
    nodes_become(&ensemble, PATH, 2).await;
    // So many readers wait for the foreign writer that the last ones find their predecessor by sequence
    // number.
    let mut readers = Vec::new();
    for waiting in 1..=6 {
        readers.push(reading(&lock));
        nodes_become(&ensemble, PATH, 2 + waiting).await;
    }
    write.release().await.unwrap();
    let strange = stranger.await.unwrap();
    nodes_become(&ensemble, PATH, 7).await;
    assert!(!readers.iter().any(JoinHandle::is_finished), "a reader beside a writer");
    strange.release().await.unwrap();
    for reader in readers {
        reader.await.unwrap().release().await.unwrap();
    }
}
