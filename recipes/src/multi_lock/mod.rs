//! Several locks at once, without deadlock.

mod acquire;
mod builder;
mod error;
mod handle;
mod modes;
mod plan;

pub use self::builder::MultiLockBuilder;
pub(crate) use self::builder::no_member;
pub use self::error::MultiLockError;
pub use self::handle::MultiLock;
