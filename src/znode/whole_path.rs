use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

/// The path of a node with the chroot, for people: in errors and in logs.
///
/// No call takes it. Every other path in the API is a [`ZnodePath`](crate::ZnodePath), is below the
/// chroot of its manager, and can go into any call again. The two are different types because a path with the
/// chroot, given to a lock, would name another lock: the one below the chroot *twice*.
///
/// # Examples
///
/// ```compile_fail,E0277
/// # fn again(manager: &lockkeeper_core::ConnectionManager, lost: lockkeeper_core::Lost) {
/// # use lockkeeper_core::{Label, LockQueue, Rule};
/// let another = LockQueue::new(manager, lost.path, Label::LOCK, Rule::MUTEX);
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WholePath(Arc<str>);

impl WholePath {
    /// The path as text, for logs.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Display for WholePath {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl From<&str> for WholePath {
    fn from(path: &str) -> Self {
        Self(path.into())
    }
}

impl From<String> for WholePath {
    fn from(path: String) -> Self {
        Self(path.into())
    }
}
