//! The parts of counters, shared values and latches.

#[doc(inline)]
pub use crate::compare_and_set::CompareAndSet;
#[doc(inline)]
pub use crate::counter::CounterNumber;
#[doc(inline)]
pub use crate::latch::LatchState;
#[doc(inline)]
pub use crate::shared_value::{Revision, SharedData, Versioned};
