//! The seam under the manager, for the project's own simulation. **No part of the public interface**: it changes
//! without notice.
//!
//! A [`Backend`] stands for the ensemble and the network, a [`Host`] for the machine. With both from one seed, under
//! tokio's paused time and on one thread, a run is the same every time: nothing here iterates in the order of a
//! random hash, and no `select!` throws dice.

pub use crate::backend::{
    Backend, Created, Link, MultiError, Reply, Watch, WatchEvent, Wire, WireError, WriteOp, WriteResult,
};
pub use crate::host::Host;
pub use uuid::Uuid;
