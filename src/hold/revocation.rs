//! Requests to release a lock, by the bytes that Curator uses.

use futures::FutureExt;
use futures::future::select_all;

use super::held::Hold;
use crate::error::{Error, LossReason, Operation, Refusal};
use crate::session::{Observation, OwnedNode};
use crate::time::deadline::Deadline;
use crate::wire::WireError;

/// The data that a revoke request writes to a contender's node. Source: Curator's
/// `LockInternals.REVOKE_MESSAGE`.
pub(crate) const REVOKE: &[u8] = b"__REVOKE__";

/// Whether this data is a request: Curator's bytes alone, or with what the node said behind them.
pub(crate) fn is_request(data: &[u8]) -> bool {
    data.strip_prefix(REVOKE).is_some_and(|rest| matches!(rest.first(), None | Some(b' ')))
}

/// What the node said before the request, if the request has it.
pub(crate) fn without_request(data: &[u8]) -> &[u8] {
    data.strip_prefix(REVOKE).and_then(|rest| rest.strip_prefix(b" ")).unwrap_or(data)
}

impl Hold {
    /// Resolves when a process requests that the holder release, by a [`Revoker`](crate::Revoker) or by
    /// Curator's. It is a request: the hold stays valid until it is released.
    ///
    /// Every request since the node was created counts, including one during the wait in the queue, unless
    /// the node's data was written again after it. For a hold of several nodes, a request to one of them is
    /// enough.
    ///
    /// Costs one read of each node, and a watch on each node during the wait. Without room in the watch
    /// budget, the node is polled.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] once the hold is lost, [`Error::Refused`] when the access list does not allow this
    /// client to read its own node, [`Error::Closed`] after a shutdown.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a later call reports the same request.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = lockkeeper_testserver::TestServer::start().await?;
    /// # let manager = lockkeeper_core::ConnectionManager::connect(&server.connect_string()).await?;
    /// use lockkeeper_core::{Deadline, Label, LockQueue, Revoker, Rule};
    ///
    /// let queue = LockQueue::new(&manager, "/gate", Label::LOCK, Rule::MUTEX)?;
    /// let held = queue.acquire(Deadline::never()).await?;
    ///
    /// // Somewhere else:
    /// let revoker = Revoker::new(&manager);
    /// assert_eq!(revoker.ask(&queue.inspect().await?).await?.len(), 1);
    ///
    /// held.revoke_requested().await?;
    /// held.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn revoke_requested(&self) -> Result<(), Error> {
        select_all(self.nodes().map(|node| wait_revoke_message(node).boxed())).await.0
    }

    /// As [`revoke_requested`](Self::revoke_requested), for the first hold that receives a request. Never
    /// resolves for an empty slice.
    ///
    /// # Errors
    ///
    /// As [`revoke_requested`](Self::revoke_requested), of the first hold that fails.
    ///
    /// # Cancel safety
    ///
    /// As [`revoke_requested`](Self::revoke_requested).
    pub async fn revoke_requested_any(holds: &[&Self]) -> Result<(), Error> {
        if holds.is_empty() {
            return std::future::pending().await;
        }
        select_all(holds.iter().map(|hold| hold.revoke_requested().boxed())).await.0
    }
}

pub(crate) async fn wait_revoke_message(node: &OwnedNode) -> Result<(), Error> {
    let session = node.session();
    loop {
        node.settle()?;
        let asked_on = session.connection();
        let room = session.watch_budget().reserve_spare(node.path());
        let mut reply = session.observe_data(node.path(), room);
        let read = tokio::select! {
            biased;
            lost = node.lost() => return Err(lost.into()),
            read = session.await_reply(&mut reply, Deadline::never()) => read,
        };
        match read {
            Ok((data, ..)) if is_request(&data) => {
                node.set_revoke_requested();
                return Ok(());
            }
            Ok((.., watch)) => {
                let mut observation = Observation::new(session, asked_on, [watch]);
                tokio::select! {
                    biased;
                    lost = node.lost() => return Err(lost.into()),
                    _ = observation.changed() => {}
                }
            }
            Err(WireError::Refused(Refusal::NoNode)) => {
                node.on_missing();
                // After a release, there is nothing left to revoke.
                return Err(node
                    .settle()
                    .err()
                    .unwrap_or_else(|| node.loss_by(LossReason::NodeDeleted))
                    .into());
            }
            Err(error) => {
                let retry = session.retry_after(&error, Operation::Read, node.path(), Deadline::never());
                retry.await.map_err(|stop| node.error_of(stop))?;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_may_have_what_the_node_said_behind_it() {
        for (data, is_it, said) in [
            (&b"__REVOKE__"[..], true, &b"__REVOKE__"[..]),
            (b"__REVOKE__ host=a pid=7", true, b"host=a pid=7"),
            (b"__REVOKE__host=a", false, b"__REVOKE__host=a"),
            (b"host=a pid=7 __REVOKE__", false, b"host=a pid=7 __REVOKE__"),
            (b"", false, b""),
        ] {
            assert_eq!((is_request(data), without_request(data)), (is_it, said), "{data:?}");
        }
    }
}
