//! Contenders of several processes that wait for each other.
//!
//! # How it is found
//!
//! 1. The locks below a root are read ([`Survey`](crate::survey::Survey)).
//! 2. The nodes are assigned to *actors* (`actors`). A waiter for a named owner writes into its node which
//!    nodes the owner holds; the nodes of one transaction are of one contender. Where that is unknown, all
//!    nodes of a session are taken together, and what follows is only *possible*.
//! 3. The graph is reduced (`graph`): by the rule that grants holds, [`Rule::blocks`](lockkeeper_core::Rule),
//!    every actor that can be served is struck. The others are stuck.
//! 4. Circles of stuck actors are searched, for people (`circles`).
//! 5. The locks of a circle are read once more (`find`). The circle is reported if the same nodes still wait.
//!
//! Nothing is deleted: the report says how to end the deadlock.

mod actors;
mod circles;
mod find;
mod graph;
#[cfg(test)]
mod graph_test;
mod report;

pub use self::actors::Certainty;
pub use self::report::{Deadlock, Deadlocks, WaitEdge};
