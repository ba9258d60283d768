//! Clocks and deadlines.

pub(crate) mod boot;
pub(crate) mod deadline;
pub(crate) mod fractions;
pub(crate) mod server_clock;
