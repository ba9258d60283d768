use lockkeeper_fence::sql::Fence;
use lockkeeper_fence::{FenceError, FencingToken, Marks};
use sqlx::{AssertSqlSafe, MySqlConnection, PgConnection, SqliteConnection};

/// A connection to any of the databases. Transactions are begun and ended by statements.
#[derive(Debug)]
pub(crate) enum Link {
    Postgres(PgConnection),
    Sqlite(SqliteConnection),
    MySql(MySqlConnection),
}

const FENCE: Fence = Fence::new();

macro_rules! on {
    ($link:expr, $connection:ident => $call:expr) => {
        match $link {
            Link::Postgres($connection) => $call,
            Link::Sqlite($connection) => $call,
            Link::MySql($connection) => $call,
        }
    };
}

impl Link {
    pub(crate) async fn run(&mut self, statement: &str) -> Result<(), sqlx::Error> {
        let statement = AssertSqlSafe(statement.to_owned());
        on!(self, connection => sqlx::raw_sql(statement).execute(connection).await.map(|_| ()))
    }

    /// The first column of the first row.
    pub(crate) async fn number(&mut self, query: &str) -> Result<i64, sqlx::Error> {
        let query = AssertSqlSafe(query.to_owned());
        on!(self, connection => sqlx::query_scalar(query).fetch_one(connection).await)
    }

    pub(crate) async fn create_table(&mut self) -> Result<(), FenceError> {
        on!(self, connection => FENCE.create_table(connection).await)
    }

    pub(crate) async fn check(&mut self, resource: &str, token: FencingToken) -> Result<(), FenceError> {
        on!(self, connection => FENCE.check(connection, resource, token).await)
    }

    pub(crate) async fn check_read(&mut self, resource: &str, token: FencingToken) -> Result<(), FenceError> {
        on!(self, connection => FENCE.check_read(connection, resource, token).await)
    }

    pub(crate) async fn mark_above(&mut self, resource: &str, token: FencingToken) -> Result<(), FenceError> {
        on!(self, connection => FENCE.mark_above(connection, resource, token).await)
    }

    pub(crate) async fn newest(&mut self, resource: &str) -> Result<Marks, FenceError> {
        on!(self, connection => FENCE.newest(connection, resource).await)
    }
}
