use std::error::Error;

use crate::shared_value::SharedData;

/// What is left to count of a [`CountDownLatch`](crate::CountDownLatch), and in which generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LatchState {
    /// The counts until the latch is open; 0 if it is open.
    pub left: u32,
    /// How often the latch was reset.
    pub generation: u64,
}

impl LatchState {
    /// Whether a waiter that began in this generation may go on.
    pub(super) fn is_open_for(self, generation: u64) -> bool {
        self.left == 0 || self.generation > generation
    }

    pub(super) fn counted_down(self) -> Option<Self> {
        Some(Self { left: self.left.checked_sub(1)?, ..self })
    }
}

impl SharedData for LatchState {
    fn encode(&self) -> Vec<u8> {
        format!("{} {}", self.left, self.generation).into_bytes()
    }

    fn decode(data: &[u8]) -> Result<Option<Self>, Box<dyn Error + Send + Sync>> {
        let text = std::str::from_utf8(data)?;
        let (left, generation) = text.split_once(' ').ok_or("not a count and a generation")?;
        Ok(Some(Self { left: left.parse()?, generation: generation.parse()? }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_as_it_was_written_and_is_open_at_zero_and_behind_a_reset() {
        let state = |left, generation| LatchState { left, generation };
        for state in [state(3, 0), state(u32::MAX, u64::MAX)] {
            assert_eq!(LatchState::decode(&state.encode()).unwrap(), Some(state));
        }
        for bad in ["", "3", "3 x", "-1 0", "4294967296 0"] {
            assert!(LatchState::decode(bad.as_bytes()).is_err(), "{bad}");
        }
        assert!(state(0, 4).is_open_for(4) && state(3, 5).is_open_for(4) && !state(3, 4).is_open_for(4));
        assert_eq!((state(0, 1).counted_down(), state(2, 1).counted_down()), (None, Some(state(1, 1))));
    }
}
