//! Presences: ephemeral nodes that are created again in each session.
//!
//! * `decide`: what to do next, and what is true. Pure.
//! * `targets`: the data that the application wants, and the fate of each call that set it. Pure.
//! * `task`: sends the requests of the engine, over one session after the other.
//! * `release`: deletes the node at the end, and answers when none is left.
//! * `table`: what the presences of one manager share.
//! * `handle`: what a recipe sees.
//!
//! Protocol and sources: `docs/protocol.md`, "Registrations and groups".

mod decide;
mod error;
mod handle;
mod release;
mod requests;
mod state;
mod table;
mod targets;
mod task;
#[cfg(test)]
mod tests;

pub use self::error::PresenceError;
pub use self::handle::Presence;
pub use self::state::{OnDeletion, PresenceState};
