//! The states of a manager, of its sessions, and of its holds.

#[doc(inline)]
pub use lockkeeper_core::{Epoch, Health, HoldEvent, HoldEvents, State, Transition, Transitions};
