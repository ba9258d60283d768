//! An in-process ZooKeeper look-alike for tests and demos. Never for production data.
//!
//! [`TestServer`] speaks the wire protocol of ZooKeeper 3.8 on a loopback port, so that any client can talk
//! to it, and does on order what a real server does only on a bad day: see [`fault`]. It starts in a few
//! milliseconds, keeps everything in memory, and stops when it is dropped.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! use lockkeeper_testserver::TestServer;
//!
//! let server = TestServer::start().await?;
//! assert!(server.connect_string().starts_with("127.0.0.1:"));
//! # Ok::<_, lockkeeper_testserver::StartError>(())
//! # })?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! [`TestEnsemble`] puts several servers in front of one tree, for tests of fail-over and of stale servers.
//!
//! Underneath is [`machine`], the same server as a pure state machine for simulations.
//!
//! With the feature `tls` a server takes its connections over TLS, and with the feature `zookeeper` the
//! module `zookeeper` starts Apache ZooKeeper itself, if it is installed.
//!
//! Its answers are compared with those of Debian's ZooKeeper 3.8.0; the README lists where it differs and
//! why.

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod fault;
#[cfg(any(test, lockkeeper_fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
pub mod machine;
pub mod protocol;
pub mod tree;
#[cfg(feature = "zookeeper")]
pub mod zookeeper;

mod server;
mod wire;

pub use fault::{ArmedFault, Fault, When};
pub use machine::{Isolation, Mode};
pub use protocol::{ErrorCode, Op};
pub use server::{Builder, StartError, TestEnsemble, TestServer};
