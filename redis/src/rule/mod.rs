//! The rules of the scripts, in Rust: no I/O and no clock.
//!
//! The scripts run on the server; these functions say what they decide. A test runs both side by side on one
//! sequence of calls, and the simulation runs clients on these.

mod lock_rule;
#[cfg(test)]
mod lock_rule_test;
#[cfg(test)]
mod simulation_test;
mod starts_rule;

pub use self::lock_rule::{Answer, Grant, LockRule};
pub use self::starts_rule::StartsRule;
