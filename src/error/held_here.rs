use std::fmt::{self, Display, Formatter};
use std::panic::Location;

/// A hold of this manager in the queue in which the same manager waits.
///
/// A second acquire of a lock that is not reentrant waits for the guard of the first one. If the same task
/// has both, the wait does not end: release the first guard before, or use a
/// [`ReentrantMutex`](https://docs.rs/lockkeeper/latest/lockkeeper/struct.ReentrantMutex.html).
///
/// As text: `held by this manager, acquired at src/main.rs:12:30`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldHere {
    pub(crate) place: Option<&'static Location<'static>>,
}

impl HeldHere {
    /// The call that acquired the guard. If several guards share the hold, that of the first one. `None` for
    /// a guard that was acquired through a trait object, and for the hold of a recipe that does not record
    /// it.
    #[must_use]
    pub fn place(&self) -> Option<&'static Location<'static>> {
        self.place
    }
}

impl Display for HeldHere {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str("held by this manager")?;
        match self.place {
            Some(place) => write!(formatter, ", acquired at {place}"),
            None => Ok(()),
        }
    }
}
