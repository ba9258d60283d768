use std::sync::Arc;

use lockkeeper_core::Error;

use super::handle::Semaphore;
use super::permit_entry::PermitEntry;
use crate::sharing::{HandOffPolicy, SharingHandle};

impl Semaphore {
    /// Keeps the node of a permit from one lease to the next, within the bounds of `hand_off`: the tasks of
    /// this process hand permits off among themselves without a request.
    ///
    /// This is for permits that many tasks of one process take often, for a short time each. The clones of
    /// the returned semaphore share the nodes. Another object with the same path is another contender, also
    /// in this process. So are a request for more than one permit, a ticket of [`enqueue`](Self::enqueue),
    /// and a [`MultiLock`](crate::MultiLock) that takes all members at once.
    ///
    /// * **Single permits alone** are kept. A request for more takes its permits from the server, all at
    ///   once, and deletes the idle nodes of this process first.
    /// * **Waiters** of this process have no nodes of their own. One contender waits in the queue for all of
    ///   them, and takes one permit after another as long as a task waits. Its nodes name no owner.
    /// * **When a lease ends**, the task that has waited longest gets its permit, with a greater [fencing
    ///   token](crate::Hold::fencing_token): the same [number](crate::FencingToken::as_u64), and one more
    ///   [hand-off](crate::FencingToken::handover).
    /// * **While another contender waits for permits**, each permit is handed off at most
    ///   [`max_handoffs`](HandOffPolicy::max_handoffs) times, and for at most
    ///   [`max_time`](HandOffPolicy::max_time), and no node is idle. Another contender waits if no permit is
    ///   free, or if it is still in the queue after [`max_time`](HandOffPolicy::max_time): it needs more
    ///   permits than are free. One that takes a free permit and leaves the queue does not count. One watch
    ///   of the queue shows the contenders. It is set when a second lease needs a node, and until it is
    ///   answered, the process assumes that another contender waits.
    /// * **With an [`idle_time`](HandOffPolicy::idle_time)**, a node stays for that time although no task of
    ///   this process waits, and a repeated acquire sends nothing. To [`available`](Self::available),
    ///   to [`inspect`](Self::inspect), and to all other contenders its permit is in use. An idle node is
    ///   deleted when another contender waits, when a process asks for it ([`Revoker`](crate::Revoker)), and
    ///   with the last clone of the semaphore.
    /// * **A shared limit that is lowered** below the number of permits in use ends the hand-offs: the
    ///   permits of leases that end are released until the limit is kept.
    /// * **`try_acquire`** takes an idle node without a request. Without one it asks the server, unless a
    ///   task of this process waits.
    /// * **`release().await`** returns without a request if the permit is handed off, or the node stays idle.
    ///   The node exists then.
    /// * A permit is released, and not handed off, if another client asked for it, if a
    ///   [transaction](crate::Hold::txn) under it was dropped or had no answer, if it is lost, and if a
    ///   shutdown of the manager has begun.
    ///
    /// # Ordering and fairness
    ///
    /// First in, first out among the tasks of this process that wait for one permit. Among processes, the
    /// order of the queue, except that a process may hand its permits off within the bounds above.
    ///
    /// # Session loss
    ///
    /// A lease is lost as that of a plain semaphore. The contender for the waiting tasks queues in the next
    /// session, at the end of the queue, also while lost leases are still kept.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if `hand_off` is outside its ranges. If the contender in the queue fails, the task
    /// that has waited longest gets its error, and the next one tries again.
    ///
    /// # Cancel safety
    ///
    /// A task that is dropped while it waits leaves nothing behind: the permit that was on its way to it goes
    /// to the next task.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = lockkeeper_testserver::TestServer::start().await?;
    /// # let manager = lockkeeper::ConnectionManager::connect(&server.connect_string()).await?;
    /// use std::time::Duration;
    /// use lockkeeper::Semaphore;
    /// use lockkeeper::config::HandOffPolicy;
    ///
    /// let hand_off = HandOffPolicy::default().idle_time(Duration::from_millis(500));
    /// let licences = Semaphore::new(&manager, "/licences/compiler", 4)?.with_handoff(hand_off)?;
    ///
    /// let first = licences.acquire().await?;
    /// let token = first.fencing_token();
    /// first.release().await?;
    /// let second = licences.acquire().await?; // without a request, if it was within 500 ms
    /// assert!(second.fencing_token() > token);
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_handoff(self, hand_off: HandOffPolicy) -> Result<Self, Error> {
        hand_off.check(&self.manager)?;
        let plain = Self { sharing: None, ..self };
        let entry = PermitEntry::new(plain.clone(), hand_off.longest())?;
        Ok(Self { sharing: Some(SharingHandle::of_many(hand_off, Arc::new(entry))), ..plain })
    }
}
