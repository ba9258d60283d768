//! How a member gets an item: it queues, and asks the holder.

use std::convert::Infallible;

use lockkeeper_core::{Deadline, Error, Hold, LockQueue, Revoker, Role};
use tracing::debug;

use crate::election::TermPauses;

/// Queues for the item until it is granted, and asks the present holder to give it up.
///
/// # Errors
///
/// As [`LockQueue::acquire`].
///
/// # Cancel safety
///
/// No node is left behind.
pub(super) async fn contend(queue: &LockQueue) -> Result<Hold, Error> {
    let mut ticket = queue.enqueue(Deadline::never()).await?;
    if ticket.position() == Some(0) {
        return ticket.wait(Deadline::never()).await;
    }
    let mine = ticket.name().map(str::to_owned);
    tokio::select! {
        biased;
        hold = ticket.wait(Deadline::never()) => hold,
        never = ask(queue, mine.as_deref()) => match never {},
    }
}

/// Asks the holder once. If that fails for good, the holder still learns of the move by itself.
async fn ask(queue: &LockQueue, mine: Option<&str>) -> Infallible {
    let mut pauses = TermPauses::default();
    while let Err(error) = try_ask(queue, mine).await {
        debug!(path = %queue.whole_path(), %error, "the holder of an item was not asked");
        if !error.is_transient() && !error.outcome_unknown() {
            break;
        }
        tokio::time::sleep(pauses.after(std::time::Duration::ZERO)).await;
    }
    std::future::pending().await
}

async fn try_ask(queue: &LockQueue, mine: Option<&str>) -> Result<(), Error> {
    let contenders = queue.inspect().await?;
    let holder = contenders.iter().filter(|of| of.role() == Role::Holder);
    let asked = holder.filter(|of| Some(of.name()) != mine && !of.is_revoked());
    Revoker::new(queue.manager()).ask(asked).await?;
    Ok(())
}
