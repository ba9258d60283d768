//! Test harness of lockkeeper: real ZooKeeper servers, and the faults that befall them.
//!
//! * [`Ensemble`] starts Debian's ZooKeeper on loopback, one server or three. Each [`Server`] has verbs (`kill`, `stop`,
//!   `pause`, `resume`, `restart`), and a verb returns when its effect has been seen.
//! * [`RawClient`] speaks the wire protocol by itself, so that what a test believes does not depend on the client under test.
//! * [`inspect`] reads the servers' own reports (the four-letter words).
//! * [`Timing`] scales every wait, [`eventually`] is the way to wait.
//!
//! Nothing is left running: servers die with their [`Ensemble`], and with the test process however it dies.

mod ensemble;
mod error;
pub mod inspect;
mod left_out;
mod timing;
pub mod wire;

pub use ensemble::{Ensemble, EnsembleBuilder, Server};
pub use error::HarnessError;
pub use inspect::Role;
pub use left_out::left_out;
pub use timing::{Timing, eventually};
pub use wire::{CreateMode, OpCode, RawClient, Stat};
