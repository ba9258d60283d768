use lockkeeper_lock::FencingToken;

use super::connection::{FenceConnection, is_transient};
use crate::error::{FenceError, Stale, checked_name};
use crate::marks::Marks;

/// The check of fencing tokens within the caller's own SQL transaction, by the table `lockkeeper_fence`.
///
/// A resource is what one lock protects: a name such as `stock/train-7`. Its row has the newest tokens that
/// the database has seen ([`Marks`]). The check admits a token and raises the mark in one statement, and the
/// row stays locked until the transaction ends. So of two holders whose transactions meet, one waits for the
/// end of the other, or its transaction is refused; both orders are right.
///
/// 1. Make the check **the first statement** of the transaction that writes, and commit both together. A
///    check in a transaction of its own protects nothing that is written after it.
/// 2. On any error, roll back at once (`tx.rollback().await`). A transaction of sqlx that is only dropped, as
///    by `?`, ends when its connection is back in its pool. Without a pool it ends with the next use of the
///    connection. Until then the row is locked, and the next holder waits.
/// 3. The database must be one: a row of one database says nothing of writes to another one.
///
/// # Isolation
///
/// | database, isolation level | two holders at the same time |
/// |---|---|
/// | PostgreSQL, READ COMMITTED | the second check waits for the end of the first transaction, and decides by what it committed |
/// | PostgreSQL, REPEATABLE READ and SERIALIZABLE | the same wait; if the first one commits, the second transaction is refused with a serialization failure ([`is_transient`](FenceError::is_transient)). Begun again, its check decides |
/// | MySQL, all levels | as READ COMMITTED: the check reads the latest committed marks, and locks the row. Statements behind it read the snapshot of the transaction, which the first plain read makes: so check first |
/// | SQLite | one writer at a time. Begin with `BEGIN IMMEDIATE`: a transaction that has read before its check is refused as busy if another one has written meanwhile |
///
/// # Readers
///
/// [`check_read`](Self::check_read) is for readers of a read/write lock. Readers do not refuse each other,
/// but each of their checks locks the row: those of one resource follow each other until their transactions
/// end, and at REPEATABLE READ one of two that meet begins again. A reader that needs no such order checks
/// once in a transaction of its own: then late writers are refused, and what it reads later may be of a newer
/// writer.
///
/// # Cancel safety
///
/// A check that is dropped may be applied in its transaction. Roll the transaction back.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fence;

impl Fence {
    /// The fence by the table `lockkeeper_fence`.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }

    /// Creates the table, if it does not exist: for tests, and for programs without migrations. A migration
    /// has the text of [`Statements::table`](super::Statements::table).
    ///
    /// # Errors
    ///
    /// What the database says.
    pub async fn create_table<C: FenceConnection>(&self, connection: &mut C) -> Result<(), FenceError> {
        connection.create_table().await.map_err(|error| not_checked("lockkeeper_fence", error))
    }

    /// Admits a write under a hold with this token, or refuses it. An equal token is the same holder.
    ///
    /// # Errors
    ///
    /// [`FenceError::Stale`] if the resource has seen a newer token of a writer or of a reader.
    pub async fn check<C: FenceConnection>(
        &self,
        connection: &mut C,
        resource: &str,
        token: FencingToken,
    ) -> Result<(), FenceError> {
        checked_name(resource)?;
        let checked = connection.affect(C::STATEMENTS.check, resource, token).await;
        let admitted = checked.map_err(|error| not_checked(resource, error))?;
        if C::COUNTS_ADMITTED && admitted > 0 {
            return Ok(());
        }
        let marks = self.newest(connection, resource).await?;
        let is_admitted = !C::COUNTS_ADMITTED && marks.writer() == token && marks.reader() <= token;
        let newer = marks.writer().max(marks.reader());
        if is_admitted { Ok(()) } else { Err(Stale::new(resource, token, newer).into()) }
    }

    /// Admits a read under a reader's hold with this token, or refuses it. Readers do not refuse each other.
    ///
    /// From then on, the resource refuses writers with older tokens. An owner that holds several sides of a
    /// lock gives the greatest of their tokens.
    ///
    /// # Errors
    ///
    /// [`FenceError::Stale`] if the resource has seen a newer token of a writer.
    pub async fn check_read<C: FenceConnection>(
        &self,
        connection: &mut C,
        resource: &str,
        token: FencingToken,
    ) -> Result<(), FenceError> {
        checked_name(resource)?;
        let checked = connection.affect(C::STATEMENTS.check_read, resource, token).await;
        let admitted = checked.map_err(|error| not_checked(resource, error))?;
        if C::COUNTS_ADMITTED && admitted > 0 {
            return Ok(());
        }
        let marks = self.newest(connection, resource).await?;
        let is_admitted = !C::COUNTS_ADMITTED && marks.writer() <= token;
        if is_admitted { Ok(()) } else { Err(Stale::new(resource, token, marks.writer()).into()) }
    }

    /// Fences off a holder by hand: from the commit on, the resource refuses this token, those of all holders
    /// that its node is handed over to, and all older ones. For the engineer on call, before a node is
    /// deleted by force. A mark is never lowered.
    ///
    /// # Errors
    ///
    /// What the database says. A newer mark is no error.
    pub async fn mark_above<C: FenceConnection>(
        &self,
        connection: &mut C,
        resource: &str,
        token: FencingToken,
    ) -> Result<(), FenceError> {
        checked_name(resource)?;
        let raised = connection.affect(C::STATEMENTS.raise, resource, token.mark_above()).await;
        raised.map(|_| ()).map_err(|error| not_checked(resource, error))
    }

    /// The newest tokens that the resource has seen; the default for a resource without any.
    ///
    /// # Errors
    ///
    /// What the database says.
    pub async fn newest<C: FenceConnection>(
        &self,
        connection: &mut C,
        resource: &str,
    ) -> Result<Marks, FenceError> {
        checked_name(resource)?;
        let read = connection.newest(resource).await;
        Ok(read.map_err(|error| not_checked(resource, error))?.unwrap_or_default())
    }
}

/// The error of the fence for one of the database.
pub(crate) fn not_checked(resource: &str, error: sqlx::Error) -> FenceError {
    let is_transient = is_transient(&error);
    FenceError::NotChecked { resource: resource.to_owned(), is_transient, source: error.into() }
}
