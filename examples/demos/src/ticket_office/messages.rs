//! The messages between the office and a seller: one JSON object a line, over the seller's standard input and
//! output.
//!
//! The office says a [`Briefing`] first, then [`Order`](super::orders::Order)s. The seller answers each order
//! with a [`Done`]. The end of its input means that the office has closed, for whatever reason.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::fixture::{Connection, EngineOptions};

/// All a seller has to know.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Briefing {
    pub(crate) seller: u32,
    pub(crate) connection: Connection,
    /// The root of the ledger.
    pub(crate) root: String,
    pub(crate) tasks: u32,
    pub(crate) lock: bool,
    /// Where the locks are.
    pub(crate) engine: EngineOptions,
    /// Between reading what is left and selling.
    pub(crate) think: Duration,
}

/// An order is in the ledger.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Done {
    pub(crate) order: u32,
    /// The number of sold seats; 0 for a refused order.
    pub(crate) sold: u32,
}
