//! The check in SQL: texts for every driver, and `Fence` for sqlx.

#[cfg(feature = "__sql")]
mod connection;
#[cfg(feature = "__sql")]
mod fence;
mod statements;

#[cfg(feature = "__sql")]
pub use self::connection::FenceConnection;
#[cfg(feature = "__sql")]
pub use self::fence::Fence;
#[cfg(all(feature = "http", feature = "__sql"))]
pub(crate) use self::fence::not_checked;
pub use self::statements::{MYSQL, POSTGRESQL, SQLITE, Statements};
