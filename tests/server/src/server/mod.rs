//! The machine behind sockets.

mod builder;
mod clock;
mod connection;
mod ensemble;
mod error;
mod front;
mod incoming;
mod listener;
mod outbox;
mod running;
mod runtime;
mod shared;
mod socket;
mod test_server;
#[cfg(feature = "tls")]
mod tls;

pub use builder::Builder;
pub use ensemble::TestEnsemble;
pub use error::StartError;
#[cfg(feature = "zookeeper")]
pub(crate) use listener::free_port;
pub use test_server::TestServer;
