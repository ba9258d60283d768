use std::fmt::{self, Debug, Formatter};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use thiserror::Error;

use crate::error::recipe::RecipeError;
use crate::wire::Stat;

/// A node of a view: its data and stat as one read showed them, and what the view's decoder made of the data.
pub struct ViewNode<T = ()> {
    stat: Stat,
    data: Box<[u8]>,
    value: Result<T, DecodeError>,
}

/// Why the data of a node has no value. The view keeps the data, and continues.
#[derive(Clone, Debug, Error)]
#[error("the data of the node cannot be decoded: {cause}")]
pub struct DecodeError {
    path: Arc<str>,
    cause: Arc<str>,
}

impl RecipeError for DecodeError {}

/// Makes a value of the path below the root of a view, the data and the stat.
pub(super) type Decode<T> = dyn Fn(&str, &[u8], &Stat) -> Result<T, DecodeFailure> + Send + Sync;

/// The error of a decoder.
pub type DecodeFailure = Box<dyn std::error::Error + Send + Sync>;

impl<T> ViewNode<T> {
    /// A decoder that panics fails.
    pub(super) fn decoded(path: &Arc<str>, (data, stat): (Vec<u8>, Stat), decode: &Decode<T>) -> Self {
        let data = data.into_boxed_slice();
        let failed = |cause: &str| DecodeError { path: Arc::clone(path), cause: cause.into() };
        let value = match catch_unwind(AssertUnwindSafe(|| decode(path, &data, &stat))) {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(failed(&error.to_string())),
            Err(_) => Err(failed("the decoder panicked")),
        };
        Self { stat, data, value }
    }

    /// The data.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// The stat of the read that showed the data. What it says of children may be older than the view.
    #[must_use]
    pub fn stat(&self) -> &Stat {
        &self.stat
    }

    /// The value that the decoder made of the data.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] when the decoder failed or panicked.
    pub fn value(&self) -> Result<&T, DecodeError> {
        self.value.as_ref().map_err(DecodeError::clone)
    }

    /// Whether both are one state of one node.
    pub(super) fn is_same_state(&self, other: &Self) -> bool {
        is_same_state(&self.stat, &other.stat)
    }

    /// The bytes that count against the bound of a view.
    pub(super) fn size(&self, path: &str) -> usize {
        self.data.len() + path.len()
    }
}

/// A node that was deleted and created again has another creation zxid, and each write has a zxid of its own.
pub(super) fn is_same_state(one: &Stat, other: &Stat) -> bool {
    (one.czxid, one.mzxid) == (other.czxid, other.mzxid)
}

/// Whether a node was created, written or deleted between two states of its path.
pub(super) fn differ<T>(before: Option<&Arc<ViewNode<T>>>, now: Option<&Arc<ViewNode<T>>>) -> bool {
    match (before, now) {
        (None, None) => false,
        (Some(before), Some(now)) => !before.is_same_state(now),
        _ => true,
    }
}

impl DecodeError {
    /// The path of the node, below the root of the view.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }
}

impl<T: Debug> Debug for ViewNode<T> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ViewNode")
            .field("bytes", &self.data.len())
            .field("value", &self.value)
            .field("mzxid", &self.stat.mzxid)
            .finish_non_exhaustive()
    }
}
