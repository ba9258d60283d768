//! The resource's side of a fencing token: SQL databases refuse a holder of a lock that is late.
//!
//! A process can be paused between its last look at a lock and its write, for any length of time. Its lease
//! ends, another process is granted the lock, and the paused one writes. No lock can stop that. The resource
//! can: each grant of [lockkeeper](https://docs.rs/lockkeeper) has a greater
//! [`FencingToken`] than the one before, and the resource refuses a token that
//! is smaller than one it has seen.
//!
//! * `sql::Fence` does so within your own transaction of [sqlx](https://docs.rs/sqlx), with the
//!   features `postgres`, `sqlite` and `mysql`.
//! * [`sql`] has the statements for every other driver.
//! * [`redis`] has scripts for Redis, and `http` (with the feature `http`) a header with layers for its
//!   sender and its receiver, which has its marks in memory, in a database, or in ZooKeeper (feature
//!   `zookeeper`).
//! * [`Marks`] is the rule itself, for resources of your own.
//!
//! Tokens start again when the servers of the locks are restored or replaced. Then the operator raises the
//! `token_generation` of the locks, which every token carries and which is compared first. The tables stay as
//! they are.
//!
//! # Examples
//!
//! ```
//! # #[cfg(feature = "sqlite")]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use lockkeeper_fence::FencingToken;
//! use lockkeeper_fence::sql::Fence;
//! use sqlx::{Connection, SqliteConnection};
//!
//! let fence = Fence::new();
//! let mut connection = SqliteConnection::connect("sqlite::memory:").await?;
//! fence.create_table(&mut connection).await?;
//! sqlx::query("CREATE TABLE stock (seats INTEGER)").execute(&mut connection).await?;
//!
//! let token = FencingToken::new(7); // guard.fencing_token()
//! let mut tx = connection.begin_with("BEGIN IMMEDIATE").await?;
//! fence.check(&mut *tx, "stock/train-7", token).await?;
//! sqlx::query("UPDATE stock SET seats = seats - 1").execute(&mut *tx).await?;
//! tx.commit().await?;
//!
//! let mut tx = connection.begin_with("BEGIN IMMEDIATE").await?;
//! let late = fence.check(&mut *tx, "stock/train-7", FencingToken::new(6)).await.unwrap_err();
//! assert!(late.is_stale()); // and the transaction is rolled back
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "sqlite"))]
//! # fn main() {}
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]

mod error;
#[cfg(all(feature = "http", any(test, lockkeeper_fuzzing)))]
#[doc(hidden)]
pub mod fuzzing;
#[cfg(feature = "http")]
pub mod http;
mod marks;
pub mod redis;
pub mod sql;

pub use lockkeeper_lock::FencingToken;

pub use self::error::{FenceError, Stale};
pub use self::marks::Marks;
