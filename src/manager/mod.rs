//! The connection manager: a handle for the application, and a task that owns the client.

mod builder;
mod connection_manager;
mod diagnosis;
#[cfg(test)]
mod ended_runtime_test;
mod granted_timeout;
mod health;
mod holds;
mod pool;
mod servers;
mod session_id;
mod shared;
mod shutdown;
mod state;
mod task;
mod time_limits;
mod view_session;
mod weak;
mod with_manager;

pub use self::builder::ConnectionManagerBuilder;
pub use self::connection_manager::ConnectionManager;
pub use self::health::Health;
pub(crate) use self::holds::HoldRegistration;
pub use self::holds::{HoldEvent, HoldEvents};
pub use self::pool::ConnectionPool;
pub use self::state::{State, Transition, Transitions};
pub use self::weak::WeakConnectionManager;
pub use self::with_manager::with_manager;
