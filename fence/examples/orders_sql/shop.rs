use std::time::Duration;

use lockkeeper_demos::fixture::Failure;
use lockkeeper_fence::sql::Fence;
use lockkeeper_fence::{FenceError, FencingToken};
use serde::{Deserialize, Serialize};
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection, SqliteConnection};

/// What the token of a lock protects here.
const RESOURCE: &str = "stock/train-7";

/// Which database the sellers share, as the leading process tells them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum ShopAddress {
    /// The file of SQLite.
    File(String),
    /// The URL of PostgreSQL, and a schema of this run.
    Server { url: String, schema: String },
}

/// A connection to the shop's database.
#[derive(Debug)]
pub(crate) enum Shop {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

/// How a sale ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sale {
    Done,
    /// The holder is late, or the version is not that which was read. Nothing is written.
    Refused,
}

/// What a seller has read, and sells from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stock {
    pub(crate) seats: i64,
    pub(crate) version: i64,
}

/// One block of code for both kinds of connections.
macro_rules! on {
    ($shop:expr, $connection:ident => $work:expr) => {
        match $shop {
            Shop::Sqlite($connection) => $work,
            Shop::Postgres($connection) => $work,
        }
    };
}

impl Shop {
    pub(crate) async fn open(address: &ShopAddress) -> Result<Self, Failure> {
        match address {
            ShopAddress::File(path) => {
                let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
                let options = options.busy_timeout(Duration::from_secs(30));
                Ok(Self::Sqlite(options.connect().await.map_err(failure)?))
            }
            ShopAddress::Server { url, schema } => {
                let options: PgConnectOptions = url.parse().map_err(failure)?;
                let options = options.options([("search_path", schema)]);
                Ok(Self::Postgres(options.connect().await.map_err(failure)?))
            }
        }
    }

    /// The tables, and a stock of so many seats.
    pub(crate) async fn set_up(&mut self, address: &ShopAddress, seats: u32) -> Result<(), Failure> {
        if let ShopAddress::Server { schema, .. } = address {
            self.run(&format!("CREATE SCHEMA {schema}")).await?;
        }
        on!(self, connection => Fence::new().create_table(connection).await).map_err(failure)?;
        self.run("CREATE TABLE stock (seats BIGINT NOT NULL, version BIGINT NOT NULL)").await?;
        self.run("CREATE TABLE orders (seller BIGINT NOT NULL)").await?;
        self.run(&format!("INSERT INTO stock VALUES ({seats}, 0)")).await
    }

    pub(crate) async fn remove(&mut self, address: &ShopAddress) -> Result<(), Failure> {
        match address {
            // The file goes with its folder.
            ShopAddress::File(_) => Ok(()),
            ShopAddress::Server { schema, .. } => self.run(&format!("DROP SCHEMA {schema} CASCADE")).await,
        }
    }

    /// Reads the stock. `None` if the token is stale: each transaction under the lock begins with the check.
    pub(crate) async fn look(&mut self, token: Option<FencingToken>) -> Result<Option<Stock>, Failure> {
        let begin = self.begin();
        on!(self, connection => {
            let mut tx = connection.begin_with(begin).await.map_err(failure)?;
            if let Some(token) = token && is_stale(Fence::new().check(&mut *tx, RESOURCE, token).await)? {
                // At once: a transaction that is only dropped ends with the next use of its connection, and
                // the next holder would wait for it.
                tx.rollback().await.map_err(failure)?;
                return Ok(None);
            }
            let stock = sqlx::query_as("SELECT seats, version FROM stock");
            let (seats, version) = stock.fetch_one(&mut *tx).await.map_err(failure)?;
            tx.commit().await.map_err(failure)?;
            Ok(Some(Stock { seats, version }))
        })
    }

    /// Writes an order, and one seat less than was read, in one transaction.
    ///
    /// With a token the fence decides. Else, with `versions`, the version of the stock does.
    pub(crate) async fn sell(
        &mut self,
        seller: u32,
        read: Stock,
        token: Option<FencingToken>,
        versions: bool,
    ) -> Result<Sale, Failure> {
        let begin = self.begin();
        let condition = if versions { format!("WHERE version = {}", read.version) } else { String::new() };
        let left = read.seats - 1;
        let update = format!("UPDATE stock SET seats = {left}, version = version + 1 {condition}");
        on!(self, connection => {
            let mut tx = connection.begin_with(begin).await.map_err(failure)?;
            if let Some(token) = token && is_stale(Fence::new().check(&mut *tx, RESOURCE, token).await)? {
                tx.rollback().await.map_err(failure)?;
                return Ok(Sale::Refused);
            }
            let order = sqlx::query("INSERT INTO orders VALUES ($1)").bind(i64::from(seller));
            order.execute(&mut *tx).await.map_err(failure)?;
            let updated = sqlx::query(AssertSqlSafe(update)).execute(&mut *tx).await.map_err(failure)?;
            if updated.rows_affected() == 0 {
                // With its order.
                tx.rollback().await.map_err(failure)?;
                return Ok(Sale::Refused);
            }
            tx.commit().await.map_err(failure)?;
            Ok(Sale::Done)
        })
    }

    pub(crate) async fn orders(&mut self) -> Result<i64, Failure> {
        let count = "SELECT count(*) FROM orders";
        on!(self, connection => sqlx::query_scalar(count).fetch_one(connection).await).map_err(failure)
    }

    /// SQLite takes the lock of its one writer at once, and not in the middle of the transaction.
    fn begin(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "BEGIN IMMEDIATE",
            Self::Postgres(_) => "BEGIN",
        }
    }

    async fn run(&mut self, statement: &str) -> Result<(), Failure> {
        let statement = sqlx::raw_sql(AssertSqlSafe(statement.to_owned()));
        on!(self, connection => statement.execute(connection).await.map(|_| ())).map_err(failure)
    }
}

fn is_stale(checked: Result<(), FenceError>) -> Result<bool, Failure> {
    match checked {
        Ok(()) => Ok(false),
        Err(error) if error.is_stale() => Ok(true),
        Err(error) => Err(failure(error)),
    }
}

fn failure(error: impl ToString) -> Failure {
    Failure::Other(error.to_string())
}
