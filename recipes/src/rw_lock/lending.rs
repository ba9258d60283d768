use lockkeeper_core::Error;

use super::lock::RwLock;
use crate::sharing::HandOffPolicy;

impl RwLock {
    /// Lets the readers of this process share one node: they hold it beside each other, and those that come
    /// while no writer waits send no request.
    ///
    /// This is for reads that many tasks of one process do often. The clones of the returned lock share the
    /// node. Another object with the same path reads by nodes of its own. So do an [owner](crate::Owner),
    /// named or in scope, because its reads are reentrant and may become writes, a ticket of
    /// [`enqueue_read`](Self::enqueue_read), and a [`MultiLock`](crate::MultiLock) that takes all members at
    /// once. Writers do not change.
    ///
    /// * **The first reader** queues as any other. Those that come meanwhile wait for it in memory, and have
    ///   no nodes. Once it is granted, they and all later ones join it. The node stays until the last of them
    ///   ends.
    /// * **As soon as a writer waits**, of this or of any other process, no reader joins any more. The next
    ///   reader queues behind the writer, by a node of its own, which others may join again. The writer
    ///   waits for the readers that were there when it came. One watch of the queue shows writers. It is set
    ///   when a second reader joins, or when the node is idle. Until the watch is answered, at most
    ///   [`max_handoffs`](HandOffPolicy::max_handoffs) readers join, and for at most
    ///   [`max_time`](HandOffPolicy::max_time): a writer may wait already.
    /// * **With an [`idle_time`](HandOffPolicy::idle_time)**, the node stays for that time after the last
    ///   reader, and the next reader sends nothing. The idle node is deleted when a writer waits, when a
    ///   process asks for it ([`Revoker`](crate::Revoker)), and with the last clone of the lock. A
    ///   [`try_write`](Self::try_write) of another process fails while the node is idle.
    /// * **The guards** of a node have one [fencing token](crate::Hold::fencing_token). Readers need no fence
    ///   against each other, and the token is greater than that of every earlier writer. It has one more
    ///   [hand-off](crate::FencingToken::handover) after an idle time.
    /// * **`release().await`** sends a request only for the last guard of a node that does not stay idle.
    /// * **`try_read`** joins the readers of this process. Otherwise it asks the server for a node of its
    ///   own, which is not shared. So does a read with a timeout of zero.
    /// * **[`try_upgrade`](super::ReadGuard::try_upgrade)** ends the sharing of its node, and succeeds only
    ///   for the last guard of the node.
    /// * No reader joins a node that another client asked for, that is lost, or after a shutdown of the
    ///   manager has begun.
    ///
    /// # Conditions
    ///
    /// The first reader queues by its own future, and the others wait for that. So poll the future of a read
    /// until it ends, or drop it.
    ///
    /// # Ordering and fairness
    ///
    /// As without it, except that readers of this process join within the bounds above. Neither side starves.
    ///
    /// # Session loss
    ///
    /// All guards of a node are lost together. The next reader queues in the next session, also while the
    /// lost guards are still kept.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if `hand_off` is outside its ranges.
    ///
    /// # Cancel safety
    ///
    /// A reader that is dropped while it waits leaves nothing behind. If it was in the queue for others, the
    /// next one queues.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = lockkeeper_testserver::TestServer::start().await?;
    /// # let manager = lockkeeper::ConnectionManager::connect(&server.connect_string()).await?;
    /// use std::time::Duration;
    /// use lockkeeper::RwLock;
    /// use lockkeeper::config::HandOffPolicy;
    ///
    /// let hand_off = HandOffPolicy::default().idle_time(Duration::from_millis(500));
    /// let lock = RwLock::new(&manager, "/locks/price-list")?.with_handoff(hand_off)?;
    ///
    /// let one = lock.read().await?;
    /// let other = lock.read().await?; // no request
    /// assert_eq!(one.path(), other.path());
    /// one.release().await?;
    /// other.release().await?;
    /// lock.write().await?.release().await?; // the idle node is deleted
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_handoff(self, hand_off: HandOffPolicy) -> Result<Self, Error> {
        hand_off.check(self.holds().manager())?;
        Ok(self.sharing_by(hand_off))
    }
}
