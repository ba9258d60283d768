//! A barrier that members enter together and leave together.
//!
//! # Protocol
//!
//! That of a [`Rendezvous`], with the nodes of Curator's and kazoo's double barriers: `<path>/<member>` is
//! ephemeral, and `<path>/ready` lets the members in. `docs/protocol.md` has the rules.
//!
//! Sources: Apache Curator's `DistributedDoubleBarrier`, CURATOR-80, CURATOR-233, CURATOR-330, GH-1290,
//! kazoo's
//! `recipe/barrier.py`.

mod handle;
mod inside;
mod inspect;

pub use self::handle::DoubleBarrier;
pub use self::inside::Inside;
pub use self::inspect::DoubleBarrierInspection;
