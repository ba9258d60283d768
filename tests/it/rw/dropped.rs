//! Dropping any future of a read/write lock at any await leaves no node.

use lockkeeper::{ConnectionManager, Owner, RwLock};
use lockkeeper_tests::{After, Ensemble, LentEnsemble, dropped_after};

use super::{PATH, lock};
use crate::support::{connect, no_node_is_left, nodes_become};

async fn start() -> (LentEnsemble, ConnectionManager, Owner, RwLock) {
    let ensemble = Ensemble::lend().await.unwrap();
    let manager = connect(&ensemble.connect_string()).await;
    let owner = Owner::new("one");
    let lock = lock(&manager).for_owner(&owner);
    (ensemble, manager, owner, lock)
}

/// No node is left, no owner holds, and the next acquire is granted.
async fn all_is_as_before(ensemble: &Ensemble, lock: &RwLock, owner: &Owner) {
    no_node_is_left(ensemble, PATH).await;
    assert_eq!((lock.read_hold_count(owner), lock.write_hold_count(owner)), (0, 0));
    drop(lock.write().await.unwrap());
    no_node_is_left(ensemble, PATH).await;
}

#[tokio::test]
async fn an_acquire_of_either_side_dropped_at_any_await_leaves_no_node() {
    let (ensemble, _manager, owner, lock) = start().await;
    for polls in 0.. {
        let reads = matches!(dropped_after(polls, lock.read()).await, After::Done(_));
        all_is_as_before(&ensemble, &lock, &owner).await;
        let writes = matches!(dropped_after(polls, lock.write()).await, After::Done(_));
        all_is_as_before(&ensemble, &lock, &owner).await;
        let tries = matches!(dropped_after(polls, lock.try_write()).await, After::Done(_));
        all_is_as_before(&ensemble, &lock, &owner).await;
        if reads && writes && tries {
            break;
        }
    }
}

#[tokio::test]
async fn a_wait_of_either_side_dropped_at_any_await_leaves_no_node() {
    let (ensemble, _manager, owner, lock) = start().await;
    let other = super::lock(&connect(&ensemble.connect_string()).await);
    for polls in 0.. {
        let held = other.write().await.unwrap();
        let read = dropped_after(polls, lock.read()).await;
        let write = dropped_after(polls, lock.write()).await;
        let asleep = matches!((&read, &write), (After::Asleep, After::Asleep));
        assert!(!matches!(read, After::Done(_)) && !matches!(write, After::Done(_)));
        nodes_become(&ensemble, PATH, 1).await;
        held.release().await.unwrap();
        all_is_as_before(&ensemble, &lock, &owner).await;
        if asleep {
            break;
        }
    }
}

#[tokio::test]
async fn a_read_under_a_write_dropped_at_any_await_leaves_the_write() {
    let (ensemble, _manager, owner, lock) = start().await;
    for polls in 0.. {
        let write = lock.write().await.unwrap();
        let done = matches!(dropped_after(polls, lock.read()).await, After::Done(_));
        nodes_become(&ensemble, PATH, 1).await;
        assert!(write.is_valid());
        write.release().await.unwrap();
        all_is_as_before(&ensemble, &lock, &owner).await;
        if done {
            break;
        }
    }
}

#[tokio::test]
async fn a_downgrade_dropped_at_any_await_leaves_no_node_and_no_hold() {
    let (ensemble, _manager, owner, lock) = start().await;
    for polls in 0.. {
        let write = lock.write().await.unwrap();
        let done = matches!(dropped_after(polls, write.downgrade()).await, After::Done(_));
        all_is_as_before(&ensemble, &lock, &owner).await;
        // Also with a read guard that exists already, and with a second write guard.
        let (write, read) = (lock.write().await.unwrap(), lock.read().await.unwrap());
        let shared = matches!(dropped_after(polls, write.downgrade()).await, After::Done(_));
        drop(read);
        all_is_as_before(&ensemble, &lock, &owner).await;
        let (write, kept) = (lock.write().await.unwrap(), lock.write().await.unwrap());
        let beside = matches!(dropped_after(polls, write.downgrade()).await, After::Done(_));
        nodes_become(&ensemble, PATH, 1).await;
        assert!(kept.is_valid());
        drop(kept);
        all_is_as_before(&ensemble, &lock, &owner).await;
        if done && shared && beside {
            break;
        }
    }
}

#[tokio::test]
async fn a_try_upgrade_dropped_at_any_await_leaves_no_node_and_no_hold() {
    let (ensemble, _manager, owner, lock) = start().await;
    let other = super::lock(&connect(&ensemble.connect_string()).await);
    for polls in 0.. {
        let read = lock.read().await.unwrap();
        let granted = matches!(dropped_after(polls, read.try_upgrade()).await, After::Done(_));
        all_is_as_before(&ensemble, &lock, &owner).await;
        let (theirs, read) = (other.read().await.unwrap(), lock.read().await.unwrap());
        let refused = matches!(dropped_after(polls, read.try_upgrade()).await, After::Done(_));
        nodes_become(&ensemble, PATH, 1).await;
        theirs.release().await.unwrap();
        all_is_as_before(&ensemble, &lock, &owner).await;
        if granted && refused {
            break;
        }
    }
}

#[tokio::test]
async fn a_release_of_either_side_dropped_at_any_await_still_completes() {
    let (ensemble, _manager, owner, lock) = start().await;
    for polls in 0.. {
        let (write, read) = (lock.write().await.unwrap(), lock.read().await.unwrap());
        let first = matches!(dropped_after(polls, write.release()).await, After::Done(_));
        nodes_become(&ensemble, PATH, 1).await;
        let second = matches!(dropped_after(polls, read.release()).await, After::Done(_));
        all_is_as_before(&ensemble, &lock, &owner).await;
        if first && second {
            break;
        }
    }
}
