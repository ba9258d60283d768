use lockkeeper_lock::FencingToken;

use super::statements::Statements;
use crate::marks::Marks;

/// A connection of sqlx to a database that a [`Fence`](super::Fence) has statements for: `PgConnection` with
/// the feature `postgres`, `SqliteConnection` with `sqlite`, `MySqlConnection` with `mysql`.
///
/// A transaction `tx` of sqlx is one as `&mut *tx`.
pub trait FenceConnection: sealed::Database {}

impl<D: sealed::Database> FenceConnection for D {}

pub(super) mod sealed {
    use lockkeeper_lock::FencingToken;

    use crate::marks::Marks;
    use crate::sql::statements::Statements;

    /// What a database does differently.
    pub trait Database: Send {
        const STATEMENTS: Statements;
        /// Whether the number of rows that a check has affected tells if the token is admitted.
        const COUNTS_ADMITTED: bool;

        /// Creates the table.
        fn create_table(&mut self) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

        /// Runs a statement that takes a resource and a token, and counts the rows that it affects.
        fn affect(
            &mut self,
            statement: &'static str,
            resource: &str,
            token: FencingToken,
        ) -> impl Future<Output = Result<u64, sqlx::Error>> + Send;

        /// Reads the marks of a resource.
        fn newest(
            &mut self,
            resource: &str,
        ) -> impl Future<Output = Result<Option<Marks>, sqlx::Error>> + Send;
    }
}

/// Whether another transaction of the same work may succeed, by the codes of the databases.
pub(super) fn is_transient(error: &sqlx::Error) -> bool {
    let Some(error) = error.as_database_error() else { return false };
    #[cfg(feature = "postgres")]
    if error.try_downcast_ref::<sqlx::postgres::PgDatabaseError>().is_some() {
        // A serialization failure, a deadlock, a lock that is not free in time.
        return error.code().is_some_and(|code| ["40001", "40P01", "55P03"].contains(&code.as_ref()));
    }
    #[cfg(feature = "sqlite")]
    if error.try_downcast_ref::<sqlx::sqlite::SqliteError>().is_some() {
        // SQLITE_BUSY and SQLITE_LOCKED are in the lowest byte of the extended codes.
        let code = error.code().and_then(|code| code.parse::<u32>().ok());
        return code.is_some_and(|code| [5, 6].contains(&(code & 0xFF)));
    }
    #[cfg(feature = "mysql")]
    if let Some(error) = error.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>() {
        // A lock that is not free in time, a deadlock, and a row that has changed since the snapshot
        // (MariaDB).
        return [1205, 1213, 1020].contains(&error.number());
    }
    false
}

/// A stored token. A column of ours has 16 bytes; others are an error, as is a column of another type.
fn token(bytes: Vec<u8>) -> Result<FencingToken, sqlx::Error> {
    let length = bytes.len();
    let sixteen = <[u8; 16]>::try_from(bytes);
    let sixteen = sixteen.map_err(|_| sqlx::Error::Decode(format!("a token of {length} bytes").into()))?;
    Ok(FencingToken::from_be_bytes(sixteen))
}

/// The same for each database: sqlx has one type of connection, row and query for each.
macro_rules! database {
    ($feature:literal, $connection:ty, $statements:expr, $counts:literal) => {
        #[cfg(feature = $feature)]
        impl sealed::Database for $connection {
            const STATEMENTS: Statements = $statements;
            const COUNTS_ADMITTED: bool = $counts;

            async fn create_table(&mut self) -> Result<(), sqlx::Error> {
                sqlx::query(Self::STATEMENTS.table).execute(self).await?;
                Ok(())
            }

            async fn affect(
                &mut self,
                statement: &'static str,
                resource: &str,
                token: FencingToken,
            ) -> Result<u64, sqlx::Error> {
                let token = token.to_be_bytes();
                let query = sqlx::query(statement).bind(resource).bind(token.as_slice());
                Ok(query.execute(self).await?.rows_affected())
            }

            async fn newest(&mut self, resource: &str) -> Result<Option<Marks>, sqlx::Error> {
                let query = sqlx::query_as::<_, (Vec<u8>, Vec<u8>)>(Self::STATEMENTS.newest);
                let Some((writer, reader)) = query.bind(resource).fetch_optional(self).await? else {
                    return Ok(None);
                };
                Ok(Some(Marks::new(token(writer)?, token(reader)?)))
            }
        }
    };
}

database!("postgres", sqlx::PgConnection, super::statements::POSTGRESQL, true);
database!("sqlite", sqlx::SqliteConnection, super::statements::SQLITE, true);
database!("mysql", sqlx::MySqlConnection, super::statements::MYSQL, false);
