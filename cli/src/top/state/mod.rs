//! What the screen shows, and what a key does: pure.

mod act;
mod keys;
mod list;
mod model;

pub(super) use self::keys::{Act, Action, Key, Move, View};
pub(super) use self::model::State;
