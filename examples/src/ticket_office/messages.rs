//! What the office and a seller say to each other: one JSON object a line, over the seller's standard input and output.
//!
//! The office says a [`Briefing`] first, then [`Order`](super::orders::Order)s. The seller answers each order with a
//! [`Done`]. The end of its input tells the seller that the office has closed, however that came about.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::fixture::Connection;

/// All a seller has to know.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Briefing {
    pub(crate) seller: u32,
    pub(crate) connection: Connection,
    /// The root of the ledger.
    pub(crate) root: String,
    pub(crate) tasks: u32,
    pub(crate) lock: bool,
    /// Between reading what is left and selling.
    pub(crate) think: Duration,
}

/// An order stands in the ledger.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Done {
    pub(crate) order: u32,
    /// How many seats were sold; 0 when it was refused.
    pub(crate) sold: u32,
}
