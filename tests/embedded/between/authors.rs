//! Between the steps of a recipe that is built on a lock's queue from outside.

use std::time::Duration;

use lockkeeper::{Error, Mutex};
use lockkeeper_core::{Deadline, Label, LockQueue, Rule};

use super::cut_off;
use crate::limit::within;
use crate::server_fixture::{LOCK, ServerFixture};

const TURN: Label = match Label::new("turn-") {
    Ok(label) => label,
    Err(_) => panic!("not a label"),
};

const RULE: Rule = Rule::blocked_by(&[TURN.kind()]);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_link_a_hold_without_reads_is_read_until_the_deadline_only() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let actor = server_fixture.actor().await.unwrap();
    let queue = LockQueue::new(&actor, LOCK, TURN, RULE).unwrap();
    let mut hold = queue.acquire(Deadline::never()).await.unwrap();
    let away = cut_off(&server_fixture, &actor).await;
    let read = tokio::spawn(async move {
        let read = hold.read(Deadline::after(Duration::from_millis(50))).await;
        (hold, read)
    });
    let (hold, read) = within("the end of the read", read).await.unwrap().unwrap();
    assert!(matches!(read, Err(Error::Timeout { .. } | Error::Lost(_))), "{read:?}");
    drop((away, hold));
}

/// Both are sent at once over one session, where sequence numbers and hand-offs save lists.
#[tokio::test]
async fn two_recipes_on_one_path_are_refused_within_one_session() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let actor = server_fixture.actor().await.unwrap();
    let queue = LockQueue::new(&actor, LOCK, TURN, RULE).unwrap();
    let mutex = Mutex::new(&actor, LOCK).unwrap();
    // A hold is kept until the other call has ended.
    let both = futures::future::join(queue.acquire(Deadline::never()), mutex.acquire());
    let (turn, lock) = within("both", both).await.unwrap();
    let refused: Vec<Error> = turn.err().into_iter().chain(lock.err()).collect();
    let is_conflict = |error: &Error| matches!(error, Error::ConflictingKind { .. });
    assert!(!refused.is_empty() && refused.iter().all(is_conflict), "{refused:?}");
    server_fixture.queue_length_becomes(0).await.unwrap();
}
