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
mod test_server;

pub use builder::Builder;
pub use ensemble::TestEnsemble;
pub use error::StartError;
pub use test_server::TestServer;
