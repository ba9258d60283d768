//! How an application configures a manager, and connects it.

mod connect;
mod options;

pub use self::options::ConnectionManagerBuilder;
