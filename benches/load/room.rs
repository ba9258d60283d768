//! The critical section, which counts its holders.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// The protected resource: a plain counter that detects broken exclusion and broken capacity.
#[derive(Debug)]
pub(crate) struct Room {
    space: i64,
    taken: AtomicI64,
    violations: AtomicU64,
}

/// The space of a room for readers and a writer: a writer takes all of it, a reader one.
pub(crate) const READERS_MAX: i64 = 1 << 32;

impl Room {
    /// A room with `space` for all holders together.
    pub(crate) fn with_space(space: i64) -> Self {
        Self { space, taken: AtomicI64::new(0), violations: AtomicU64::new(0) }
    }

    pub(crate) fn enter(&self, space: i64) {
        if self.taken.fetch_add(space, Ordering::SeqCst) + space > self.space {
            self.violations.fetch_add(1, Ordering::SeqCst);
        }
    }

    pub(crate) fn leave(&self, space: i64) {
        self.taken.fetch_sub(space, Ordering::SeqCst);
    }

    pub(crate) fn violations(&self) -> u64 {
        self.violations.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_there_is_room_for_are_a_violation() {
        let room = Room::with_space(2);
        room.enter(1);
        room.enter(1);
        assert_eq!(room.violations(), 0);
        room.enter(1);
        assert_eq!(room.violations(), 1);
        room.leave(1);
        room.leave(1);
        room.enter(1);
        assert_eq!(room.violations(), 1);
    }

    #[test]
    fn a_writer_is_alone() {
        let room = Room::with_space(READERS_MAX);
        room.enter(READERS_MAX);
        assert_eq!(room.violations(), 0);
        room.enter(1);
        assert_eq!(room.violations(), 1);
    }
}
