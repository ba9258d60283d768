//! The wait for the value, and the initialiser at the head of the queue.

use std::convert::Infallible;

use lockkeeper_core::{Deadline, Error, Hold, Once, Operation, Outcome, ReadResult, TxnError};
use tracing::{debug, info};

use super::InitError;
use super::handle::OnceCell;

/// What a contender has found.
enum ValueOrHead {
    /// The value exists.
    Value(Vec<u8>),
    /// There is no value, and this contender is the head of the queue.
    Head(Box<Hold>),
}

impl OnceCell {
    /// Returns the value. If there is none, one process of the fleet runs `init` and stores its result, and
    /// all others wait for it.
    ///
    /// `init` runs under a lock, and is dropped if the lock is lost. Then, and after a crash of the process,
    /// the next waiter runs its own `init`, so this one may run more than once. At most one result is stored.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if the server refuses a node (access list, quota). [`Error::Config`] if the value
    /// does not fit into one request. [`Error::ConflictingKind`] if another kind of lock uses `<path>/locks`.
    /// [`Error::Closed`] after a shutdown has begun. [`Error::Unknown`] instead of a refusal if a value of
    /// this call may be stored. It waits for a connection without a limit of time.
    ///
    /// # Session loss
    ///
    /// An initialiser whose session expires is dropped. The call continues in the next session.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: `init` is dropped, and the next waiter runs its own. No node is left behind. If the value
    /// was just being stored, it may be stored.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = lockkeeper_testserver::TestServer::start().await?;
    /// # let manager = lockkeeper::ConnectionManager::connect(&server.connect_string()).await?;
    /// use lockkeeper::OnceCell;
    ///
    /// let cell = OnceCell::new(&manager, "/cluster/id")?;
    /// let id = cell.get_or_init(async || b"c-4711".to_vec()).await?;
    /// assert_eq!(cell.get_or_init(async || b"another".to_vec()).await?, id);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn get_or_init<F>(&self, mut init: impl FnMut() -> F) -> Result<Vec<u8>, Error>
    where
        F: Future<Output = Vec<u8>>,
    {
        let infallible = || {
            let value = init();
            async move { Ok::<_, Infallible>(value.await) }
        };
        match self.get_or_try_init(infallible).await {
            Ok(value) => Ok(value),
            Err(InitError::Cell(error)) => Err(error),
            Err(InitError::Failed(never)) => match never {},
        }
    }

    /// As [`get_or_init`](Self::get_or_init), with an `init` that may fail. Its error is returned, and the
    /// next waiter runs its own `init`.
    ///
    /// # Errors
    ///
    /// [`InitError::Failed`] with the error of `init`. [`InitError::Cell`] as
    /// [`get_or_init`](Self::get_or_init).
    ///
    /// # Session loss
    ///
    /// As [`get_or_init`](Self::get_or_init).
    ///
    /// # Cancel safety
    ///
    /// As [`get_or_init`](Self::get_or_init).
    pub async fn get_or_try_init<E, F>(&self, mut init: impl FnMut() -> F) -> Result<Vec<u8>, InitError<E>>
    where
        F: Future<Output = Result<Vec<u8>, E>>,
    {
        match self.get().await {
            Ok(Some(value)) => return Ok(value),
            Ok(None) => {}
            // The queue waits for a connection.
            Err(error) if error.is_transient() => debug!(path = %self.whole_path(), %error, "reading again"),
            Err(error) => return Err(error.into()),
        }
        // Whether an earlier value of this call may be stored.
        let mut in_doubt = false;
        loop {
            let found = self.value_or_head().await;
            let hold = match found.map_err(|error| self.unless_in_doubt(in_doubt, error))? {
                ValueOrHead::Value(value) => return Ok(value),
                ValueOrHead::Head(hold) => *hold,
            };
            let value = match hold.run(init()).await {
                Ok(Ok(value)) => value,
                Ok(Err(error)) => {
                    self.release(hold).await;
                    return Err(InitError::Failed(error));
                }
                Err(lost) => {
                    info!(path = %self.whole_path(), %lost, "the initialiser is dropped");
                    continue;
                }
            };
            match self.store(hold, value).await.map_err(|error| self.unless_in_doubt(in_doubt, error))? {
                Some(value) => return Ok(value),
                None => in_doubt = true,
            }
        }
    }

    /// The error of the call. If a value may be stored, no later refusal says that nothing was changed.
    fn unless_in_doubt(&self, in_doubt: bool, error: Error) -> Error {
        match in_doubt && error.outcome() == Outcome::NotApplied {
            true => Error::Unknown {
                operation: Operation::Commit,
                path: self.manager().whole_path(&self.value),
                cause: format!("an earlier attempt had no answer; then: {error}"),
            },
            false => error,
        }
    }

    /// Waits until there is a value, or this contender is the head and there is none.
    async fn value_or_head(&self) -> Result<ValueOrHead, Error> {
        loop {
            let mut ticket = self.queue.enqueue(Deadline::never()).await?;
            let mut hold = match ticket.position() {
                Some(0) => ticket.wait(Deadline::never()).await?,
                // The value wakes all waiters at once; the queue wakes one, if its initialiser fails.
                _ => tokio::select! {
                    biased;
                    value = self.until_stored() => return Ok(ValueOrHead::Value(value?)),
                    hold = ticket.wait(Deadline::never()) => hold?,
                },
            };
            match hold.read(Deadline::never()).await.map(|read| read.into_iter().next()) {
                Ok(Some(ReadResult::Data { data, .. })) => return Ok(ValueOrHead::Value(data)),
                Ok(_) => return Ok(ValueOrHead::Head(Box::new(hold))),
                Err(error) if error.is_lost() => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits for the value by a watch. Without the right to list the path, the queue alone decides.
    async fn until_stored(&self) -> Result<Vec<u8>, Error> {
        match self.manager().znodes().wait_for(&self.value).await {
            Ok((value, _)) => Ok(value),
            Err(Error::Refused { .. }) => std::future::pending().await,
            Err(error) => Err(error),
        }
    }

    /// Stores the value, if the node of the hold exists and there is no value. Returns the stored one. `None`
    /// if that is not known: the next head reads it.
    async fn store(&self, hold: Hold, value: Vec<u8>) -> Result<Option<Vec<u8>>, Error> {
        let stored = hold.txn().once(&self.value).with_data(value.clone()).commit().await;
        let stored = match stored {
            Ok(Once::Committed(_)) => Some(value),
            // By another process, after nodes were deleted by hand.
            Ok(Once::Before) => None,
            Err(error) if error.outcome_unknown() || error.is_transient() => {
                info!(path = %self.whole_path(), %error, "the value may not be stored");
                None
            }
            Err(TxnError::Failed(error)) => return Err(error),
            Err(error) => return Err(error.into()),
        };
        self.release(hold).await;
        Ok(stored)
    }

    async fn release(&self, hold: Hold) {
        if let Err(error) = hold.release().await {
            debug!(path = %self.whole_path(), %error, "the release is not confirmed");
        }
    }
}
