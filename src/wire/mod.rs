//! The interface to the client crate: a dozen calls in one trait.
//!
//! Every method sends its request *when it is called*; the returned future only waits for the reply. So two
//! calls in a row are pipelined in that order, and dropping a future does not cancel its request.

#![cfg_attr(not(feature = "__simulation"), allow(unreachable_pub, reason = "reachable for the simulation"))]

mod contract;
mod create_options;
mod error;
mod in_flight;
mod link;
mod nodelay;
mod stat;
mod watch;
mod write;
pub(crate) mod zookeeper;

pub(crate) use self::contract::ServerFault;
pub use self::contract::{Backend, Data, Reply, Wire};
pub use self::create_options::CreateOptions;
pub(crate) use self::error::existing;
pub use self::error::{MultiError, WireError};
pub use self::link::Link;
pub use self::stat::Stat;
pub use self::watch::{ChangedPaths, Watch, WatchDepth, WatchEvent};
pub use self::write::{CreateMode, Created, WriteOp, WriteResult};
pub(crate) use self::zookeeper::ZooKeeper;
