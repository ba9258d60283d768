//! Apache ZooKeeper itself, for a test that has to see the real server. With the feature `zookeeper`.
//!
//! [`ZooKeeper`] starts the server of the jars that are on the machine, on a free port of the loopback
//! address and in a folder of its own. It can be killed, stopped, paused and started again. It ends with its
//! value, and with the process of the test however that dies.
//!
//! It needs Java 11 and the jars of ZooKeeper: Debian's package `zookeeper`, or a folder with the jars of a
//! release, as `lib` of Apache's archive, named by [`ZooKeeperBuilder::jars`] or by the variable
//! `ZOOKEEPER_JARS`. [`ZooKeeperError::NotInstalled`] says what is missing.
//!
//! ```no_run
//! # async fn test() -> Result<(), lockkeeper_testserver::zookeeper::ZooKeeperError> {
//! use lockkeeper_testserver::zookeeper::ZooKeeper;
//!
//! let server = ZooKeeper::start().await?;
//! println!("connect to {}", server.connect_string());
//! server.kill().await?;
//! server.restart().await?; // the same data, the same port
//! # Ok(())
//! # }
//! ```

mod builder;
mod error;
mod installation;
mod process;
mod server;

pub use builder::ZooKeeperBuilder;
pub use error::ZooKeeperError;
pub use server::ZooKeeper;
