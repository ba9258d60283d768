//! The members of one guard.

use lockkeeper::error::{LossReason, TxnError};
use lockkeeper::locks::ZooKeeperLock;
use lockkeeper::manager::HoldEvent;
use lockkeeper::{MultiLock, Mutex, Owner, ReentrantMutex, RwLock, Semaphore};

use super::{all_of, mutexes, start};
use crate::support::{children, no_node_is_left};

#[tokio::test]
async fn any_mix_is_held_by_one_guard_with_a_token_for_each() {
    let (ensemble, one, other) = start().await;
    let owner = Owner::new("mixed");
    let reentrant = ReentrantMutex::new(&one, "/mix/b").unwrap().for_owner(&owner);
    let prices = RwLock::new(&one, "/mix/c").unwrap();
    let stock = RwLock::new(&one, "/mix/d").unwrap();
    let slots = Semaphore::new(&one, "/mix/e", 4).unwrap();
    let single = Mutex::in_semaphore_layout(&one, "/mix/f").unwrap();
    let mix = |builder: lockkeeper::locks::MultiLockBuilder| {
        builder
            .lock(&slots.permits(2))
            .lock(&prices.reader())
            .lock(&reentrant)
            .lock(&stock.writer())
            .lock(&single)
            .lock(&slots.permits(1))
            .build()
            .unwrap()
    };
    // One mode after the other: the first lock is dropped before the second is built.
    for atomic in [false, true] {
        let all = mix(if atomic { MultiLock::builder().atomic() } else { MultiLock::builder() });
        assert_eq!(all.paths().count(), 5, "permits of one semaphore are added up");
        let guard = all.acquire().await.unwrap();
        assert_eq!(guard.fencing_tokens().count(), 5);
        assert!(guard.fencing_tokens().all(|(_, token)| token.as_u64() > 0));
        assert!(guard.is_valid() && all.is_held());
        assert_eq!(reentrant.hold_count(&owner), 1);
        assert_eq!(slots.available().await.unwrap(), 1);
        let others = RwLock::new(&other, "/mix/c").unwrap();
        others.try_read().await.unwrap().expect("readers share").release().await.unwrap();
        assert!(RwLock::new(&other, "/mix/d").unwrap().try_read().await.unwrap().is_none());
        assert!(Mutex::in_semaphore_layout(&other, "/mix/f").unwrap().try_acquire().await.unwrap().is_none());
        guard.release().await.unwrap();
        assert!(!all.is_held());
        for path in ["/mix/b", "/mix/c", "/mix/d", "/mix/e/locks", "/mix/e/leases", "/mix/f/leases"] {
            assert_eq!(children(&ensemble, path).await, Vec::<String>::new(), "{path}");
        }
    }
}

#[tokio::test]
async fn each_side_of_a_read_write_lock_has_its_own_events() {
    let (_ensemble, one, _other) = start().await;
    let lock = RwLock::new(&one, "/multi/rw").unwrap();
    let (mut reads, mut writes) = (lock.reader().events(), lock.writer().events());
    let write = lock.write().await.unwrap();
    assert!(lock.writer().is_held() && !lock.reader().is_held());
    let read = write.downgrade().await.unwrap();
    assert!(!lock.writer().is_held() && lock.reader().is_held());
    read.release().await.unwrap();
    for events in [&mut writes, &mut reads] {
        assert!(matches!(events.next().await, Some(HoldEvent::Acquired { .. })));
        assert!(matches!(events.next().await, Some(HoldEvent::Released { .. })));
    }
}

#[tokio::test]
async fn the_loss_of_one_member_is_the_loss_of_all_and_nothing_is_committed() {
    let (ensemble, one, _other) = start().await;
    let all = all_of(&mutexes(&one, &["a", "b"]));
    let guard = all.acquire().await.unwrap();
    let mut events = all.events();
    let mut admin = ensemble.raw().await.unwrap();
    let victim = format!("/multi/b/{}", children(&ensemble, "/multi/b").await[0]);
    admin.delete(&victim).await.unwrap();
    let created = guard.txn().create("/done", Vec::new()).commit().await;
    assert!(matches!(created, Err(TxnError::Lost(_))), "{created:?}");
    let lost = guard.lost().await;
    assert_eq!((lost.path.as_str(), lost.reason), (victim.as_str(), LossReason::NodeDeleted));
    assert!(!guard.is_valid());
    assert!(matches!(
        events.next().await,
        Some(HoldEvent::Lost { path, reason }) if path == victim && reason == lost.reason
    ));
    // The other member is released all the same, and the release returns the loss.
    assert!(guard.release().await.unwrap_err().is_lost());
    no_node_is_left(&ensemble, "/multi/a").await;
}

#[tokio::test]
async fn a_member_deleted_before_the_release_does_not_prevent_the_release_of_the_others() {
    let (ensemble, one, _other) = start().await;
    let guard = all_of(&mutexes(&one, &["a", "b", "c"])).acquire().await.unwrap();
    let mut admin = ensemble.raw().await.unwrap();
    admin.delete(&format!("/multi/b/{}", children(&ensemble, "/multi/b").await[0])).await.unwrap();
    let errors = guard.release().await.unwrap_err();
    assert_eq!(errors.errors().count(), 1);
    for path in ["a", "b", "c"] {
        assert_eq!(children(&ensemble, &format!("/multi/{path}")).await, Vec::<String>::new());
    }
}
