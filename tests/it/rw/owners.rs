//! The owners of a read/write lock.

use lockkeeper::{Mutex, Owner};

use super::{PATH, contender_nodes, lock, processes, sent, writing};
use crate::support::{behind_proxy, connect, no_node_is_left, nodes_become};

#[tokio::test]
async fn a_reader_reads_again_with_a_writer_waiting_and_without_a_round_trip() {
    let (ensemble, proxies, manager) = behind_proxy().await;
    let owner = Owner::new("one");
    let one = lock(&manager).for_owner(&owner);
    let other = lock(&connect(&ensemble.connect_string()).await);
    let outer = one.read().await.unwrap();
    let writer = writing(&other);
    nodes_become(&ensemble, PATH, 2).await;
    proxies.clear_log();
    let inner = one.read().await.unwrap();
    let tried = one.try_read().await.unwrap().unwrap();
    assert_eq!(sent(&proxies), []);
    assert_eq!(one.read_hold_count(&owner), 3);
    outer.release().await.unwrap();
    tried.release().await.unwrap();
    assert_eq!(sent(&proxies), []);
    assert!(inner.is_valid() && !writer.is_finished());
    inner.release().await.unwrap();
    writer.await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_writer_writes_again_and_its_last_guard_releases() {
    let (ensemble, [one, other]) = processes().await;
    let owner = Owner::new("one");
    let (outer, inner) =
        owner.scope(async { (one.write().await.unwrap(), one.try_write().await.unwrap().unwrap()) }).await;
    assert_eq!(outer.path(), inner.path());
    assert_eq!(one.write_hold_count(&owner), 2);
    outer.release().await.unwrap();
    assert!(inner.is_valid());
    assert!(other.try_read().await.unwrap().is_none());
    // A downgrade of one of two write guards leaves the other one a write guard.
    let again = one.for_owner(&owner).write().await.unwrap();
    let read = again.downgrade().await.unwrap();
    assert_eq!((one.read_hold_count(&owner), one.write_hold_count(&owner)), (1, 1));
    assert!(other.try_read().await.unwrap().is_none());
    let last = inner.downgrade().await.unwrap();
    assert_eq!((one.read_hold_count(&owner), one.write_hold_count(&owner)), (2, 0));
    assert_eq!(contender_nodes(&ensemble).await.len(), 1);
    assert!(other.try_read().await.unwrap().is_some());
    drop((read, last));
    no_node_is_left(&ensemble, PATH).await;
}

#[tokio::test]
async fn owners_exclude_each_other_and_without_one_nothing_is_reentrant() {
    let (ensemble, [lock]) = processes().await;
    let (one, two) = (lock.for_owner(&Owner::new("same name")), lock.for_owner(&Owner::new("same name")));
    let write = one.write().await.unwrap();
    assert!(two.try_read().await.unwrap().is_none());
    assert!(lock.try_read().await.unwrap().is_none());
    // The bound owner takes precedence over the owner in scope.
    let in_scope = Owner::new("other");
    assert!(in_scope.scope(one.try_write()).await.unwrap().is_some());
    assert!(in_scope.scope(lock.try_write()).await.unwrap().is_none());
    write.release().await.unwrap();
    let write = lock.write().await.unwrap();
    assert!(lock.try_write().await.unwrap().is_none());
    drop(write);
    no_node_is_left(&ensemble, PATH).await;
}

#[tokio::test]
async fn tasks_of_one_owner_acquire_one_after_the_other() {
    let (ensemble, [lock]) = processes().await;
    let lock = lock.for_owner(&Owner::new("one"));
    let (first, second, third) = tokio::join!(lock.read(), lock.read(), lock.read());
    let guards = [first.unwrap(), second.unwrap(), third.unwrap()];
    assert_eq!(contender_nodes(&ensemble).await.len(), 1);
    drop(guards);
    no_node_is_left(&ensemble, PATH).await;
    // One task becomes the writer, the other a reader under it: the second finds the hold of the first.
    let (write, read) = tokio::join!(lock.write(), lock.read());
    let (write, read) = (write.unwrap(), read.unwrap());
    assert_eq!(write.fencing_token(), read.fencing_token());
    assert_eq!(contender_nodes(&ensemble).await.len(), 2);
}

#[tokio::test]
async fn a_mutex_on_its_path_is_refused_and_its_node_names_the_owner() {
    let (ensemble, [one]) = processes().await;
    let manager = connect(&ensemble.connect_string()).await;
    let named = one.clone().with_node_data("note").for_owner(&Owner::new("order 4711"));
    let read = named.read().await.unwrap();
    let data = ensemble.raw().await.unwrap().data(read.path()).await.unwrap().0;
    assert_eq!(data, b"note owner=order 4711");
    let error = Mutex::new(&manager, PATH).unwrap().acquire().await.unwrap_err();
    assert!(error.to_string().contains("another kind"), "{error}");
}
