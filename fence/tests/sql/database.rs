//! A database for one test, and which one.

use std::fmt::{self, Debug, Formatter};
use std::sync::atomic::{AtomicU32, Ordering};

use lockkeeper_tests::Timing;
use sqlx::mysql::MySqlConnectOptions;
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, PgConnection};
use tempfile::TempDir;

use crate::link::Link;
use crate::postgres;

/// A database with the tables of the fence and of a shop.
pub(crate) enum Database {
    Postgres(PgConnectOptions),
    /// With the folder of its file, which is removed with it.
    Sqlite {
        options: SqliteConnectOptions,
        _folder: TempDir,
    },
    MySql(MySqlConnectOptions),
}

impl Debug for Database {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Postgres(_) => "PostgreSQL",
            Self::Sqlite { .. } => "SQLite",
            Self::MySql(_) => "MySQL",
        })
    }
}

const SHOP: &str = "
CREATE TABLE stock (resource VARCHAR(100) PRIMARY KEY, seats BIGINT NOT NULL);
CREATE TABLE orders (resource VARCHAR(100) NOT NULL, buyer BIGINT NOT NULL)";

impl Database {
    /// PostgreSQL, unless it is left out.
    pub(crate) async fn postgres() -> Option<Self> {
        static DATABASES: AtomicU32 = AtomicU32::new(0);
        let options = PgConnectOptions::new().socket(postgres::socket()?).username("lockkeeper");
        let name = format!("test_{}", DATABASES.fetch_add(1, Ordering::Relaxed));
        let mut first = PgConnection::connect_with(&options.clone().database("postgres")).await.unwrap();
        let create = sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}"));
        sqlx::raw_sql(create).execute(&mut first).await.unwrap();
        Some(Self::Postgres(options.database(&name)).set_up().await)
    }

    /// SQLite, in a file of its own.
    pub(crate) async fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = SqliteConnectOptions::new().filename(folder.path().join("shop.db"));
        let options = options.create_if_missing(true).journal_mode(SqliteJournalMode::Wal);
        let options = options.synchronous(SqliteSynchronous::Off).busy_timeout(Timing::event());
        Self::Sqlite { options, _folder: folder }.set_up().await
    }

    /// The MySQL or MariaDB that `LOCKKEEPER_MYSQL` names by a URL with an empty database, for one test at a
    /// time.
    pub(crate) async fn mysql() -> Option<Self> {
        let url = std::env::var("LOCKKEEPER_MYSQL").ok()?;
        let database = Self::MySql(url.parse().unwrap());
        database.link().await.run("DROP TABLE IF EXISTS lockkeeper_fence, stock, orders").await.unwrap();
        Some(database.set_up().await)
    }

    /// All that are there.
    pub(crate) async fn all() -> Vec<Self> {
        let mut all = vec![Self::sqlite().await];
        all.extend(Self::postgres().await);
        all.extend(Self::mysql().await);
        all
    }

    async fn set_up(self) -> Self {
        let mut link = self.link().await;
        link.create_table().await.unwrap();
        link.create_table().await.expect("a table that exists is no error");
        for statement in SHOP.split(';') {
            link.run(statement).await.unwrap();
        }
        self
    }

    /// A connection of one holder.
    pub(crate) async fn link(&self) -> Link {
        match self {
            Self::Postgres(options) => Link::Postgres(options.connect().await.unwrap()),
            Self::Sqlite { options, .. } => {
                let mut link = Link::Sqlite(options.connect().await.unwrap());
                // Connected, a transaction that is refused is begun again when the test says so.
                link.run("PRAGMA busy_timeout = 0").await.unwrap();
                link
            }
            Self::MySql(options) => Link::MySql(options.connect().await.unwrap()),
        }
    }

    /// The statements that begin a transaction which ends at once where it would wait for another one.
    /// PostgreSQL has three levels of isolation.
    pub(crate) fn impatient(&self, level: u64) -> &'static [&'static str] {
        match self {
            Self::Postgres(_) => match level {
                0 => &["SET lock_timeout = 2; BEGIN ISOLATION LEVEL READ COMMITTED"],
                1 => &["SET lock_timeout = 2; BEGIN ISOLATION LEVEL REPEATABLE READ"],
                _ => &["SET lock_timeout = 2; BEGIN ISOLATION LEVEL SERIALIZABLE"],
            },
            Self::Sqlite { .. } => &["BEGIN IMMEDIATE"],
            // MariaDB does not wait at all then, MySQL for a second.
            Self::MySql(_) => &["SET innodb_lock_wait_timeout = 0", "BEGIN"],
        }
    }
}
