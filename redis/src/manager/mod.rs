//! The connection manager: one connection, and the tasks behind it.

mod background;
mod builder;
mod handle;
mod link;
mod reconnect;
mod shared;
mod waits;
mod wire;

pub use self::builder::ConnectionManagerBuilder;
pub use self::handle::{ConnectionManager, State};
pub(crate) use self::link::{CallError, Connection};
