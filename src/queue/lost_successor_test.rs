//! A hand-off in memory to a contender whose node was deleted by hand.

use futures::future::join;
use futures::poll;

use super::ExchangeError;
use super::test_fixture::held_lock;
use crate::error::LossReason;
use crate::time::deadline::Deadline;
use crate::znode::name::Label;

#[tokio::test]
async fn a_hold_handed_off_to_a_deleted_node_is_lost_when_the_release_is_answered() {
    let (server, queue, held) = held_lock().await;
    let mut ticket = queue.enqueue(Deadline::never()).await.unwrap();
    assert_eq!(ticket.refresh(Deadline::never()).await.unwrap(), 1);
    let waiter = format!("/lock/{}", ticket.name().unwrap());
    let mut waiting = Box::pin(ticket.wait(Deadline::never()));
    assert!(poll!(&mut waiting).is_pending(), "the lock is held");
    assert!(server.delete_node(&waiter));

    // The waiter holds as soon as the release is sent. The answer shows that its node was deleted; the node
    // of the release is deleted only then, which may grant the lock to another process.
    let (released, granted) = join(held.release(), waiting).await;
    released.unwrap();
    let granted = granted.unwrap();
    assert_eq!(*granted.path(), waiter);
    assert_eq!(granted.check().unwrap_err().reason, LossReason::NodeDeleted);
}

#[tokio::test]
async fn an_exchange_hands_off_to_no_contender_whose_node_was_deleted_by_hand() {
    let (server, queue, held) = held_lock().await;
    let mut ticket = queue.enqueue(Deadline::never()).await.unwrap();
    assert_eq!(ticket.refresh(Deadline::never()).await.unwrap(), 1);
    let waiter = format!("/lock/{}", ticket.name().unwrap());
    let mut waiting = Box::pin(ticket.wait(Deadline::never()));
    assert!(poll!(&mut waiting).is_pending(), "the lock is held");
    assert!(server.delete_node(&waiter));

    let exchange = held.exchange().create_persistent("/permits", Label::LEASE, b"");
    let error = exchange.commit(Deadline::never()).await.unwrap_err();
    let ExchangeError::NotDone { hold, refused: None } = error else { panic!("{error}") };
    hold.check().unwrap();
    assert!(poll!(&mut waiting).is_pending(), "both hold");
}
