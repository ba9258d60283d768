use lockkeeper_core::{RecipeError, WholePath};
use thiserror::Error;

/// The reason why a counter was not changed, or not read. [`Error::recipe`](crate::Error::recipe) has it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CounterError {
    /// The sum is out of range. The counter is unchanged.
    #[error("adding {added} to {value} of {path} exceeds {bits} bits; use another counter")]
    Overflow {
        /// The counter.
        path: WholePath,
        /// Its value.
        value: i64,
        /// The number to add.
        added: i64,
        /// The size of the counter.
        bits: usize,
    },
    /// The data of the node is no number of this counter.
    #[error(
        "{path} has {bytes} bytes of data, and this counter has {expected}; Counter::new shares a node with \
         Curator's DistributedAtomicLong, and Counter::new_i32 with its DistributedAtomicInteger"
    )]
    NotANumber {
        /// The counter.
        path: WholePath,
        /// The length of the data.
        bytes: usize,
        /// The length of a number.
        expected: usize,
    },
}

impl RecipeError for CounterError {}
