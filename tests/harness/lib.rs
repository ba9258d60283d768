//! Test harness of lockkeeper: real ZooKeeper servers, and their faults.
//!
//! * [`Ensemble`] starts Debian's ZooKeeper, or another one, on loopback: one server or three. Each
//!   [`Server`] has verbs (`kill`, `stop`, `pause`, `resume`, `restart`), and a verb returns when its effect
//!   has been seen.
//! * [`Proxies`] are between a client and the servers. They cut, refuse and hold connections, strike at
//!   chosen requests and replies ([`Match`]), and keep a [`Log`] of all that passed.
//! * [`Between`] is between the servers themselves, for partitions.
//! * [`RawClient`] speaks the wire protocol by itself, so that what a test believes does not depend on the
//!   client under test.
//! * [`CuratorPeer`] is a Java process that takes the same locks with Apache Curator; [`Peer`] is such a
//!   process in any language, Python with kazoo among them.
//! * [`Circle`] is a deadlock on order.
//! * [`inspect`] reads the servers' own reports (the four-letter words).
//! * [`NumberHistory`] records the calls on a number, and checks that they are linearizable.
//! * [`Timing`] scales every wait, [`eventually`] is the way to wait, [`dropped_after`] the way to give up.
//!
//! Nothing is left running: servers die with their [`Ensemble`], and with the test process however it dies.
//!
//! # Examples
//!
//! The server commits a create, and the client never learns of it:
//!
//! ```no_run
//! # use lockkeeper_tests::{CreateMode, Ensemble, HarnessError, Match, OpCode, Proxies, RawClient};
//! # async fn test() -> Result<(), HarnessError> {
//! let ensemble = Ensemble::start(1).await?;
//! let proxies = Proxies::start(&ensemble).await?;
//! let lost = proxies.on(Match::new().op(OpCode::Create2).path_contains("lock-")).drop_reply_and_cut();
//!
//! let mut client = RawClient::connect(proxies.proxy(0).address()).await?;
//! assert!(client.create("/lock-", b"", CreateMode::PersistentSequential).await.is_err());
//!
//! lost.triggered().await?;
//! let mut oracle = ensemble.raw().await?;
//! assert_eq!(oracle.children("/").await?, ["lock-0000000000", "zookeeper"]);
//! # Ok(())
//! # }
//! ```

mod circle;
mod dropped;
mod ensemble;
mod error;
mod histories;
pub mod inspect;
mod jars;
mod left_out;
mod peers;
mod proxy;
mod readme;
mod timing;
mod version;
pub mod wire;

pub use circle::{Circle, Take};
pub use dropped::{After, dropped_after};
pub use ensemble::{Between, Ensemble, EnsembleBuilder, LentEnsemble, Server, ServerTls};
pub use error::HarnessError;
pub use histories::{NumberAnswer, NumberCall, NumberHistory};
pub use inspect::Role;
pub use jars::JarFolderError;
pub use left_out::{leave_out_without, left_out};
pub use peers::{CuratorElection, CuratorGrant, CuratorPeer, CuratorThread, Peer, PeerError};
pub use proxy::{
    Arming, Direction, Fate, Fault, Hold, Lie, Log, Match, Message, Proxies, Proxy, Record, RelayedSession,
};
pub use timing::{Timing, bounded, eventually, eventually_with_pause};
pub use version::Version;
pub use wire::{CreateMode, OpCode, RawClient, Stat};
