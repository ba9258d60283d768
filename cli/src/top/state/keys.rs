//! Keys, what the screen shows, and what the shell has to do.

use lockkeeper::ZnodePath;
use lockkeeper::inspect::ContenderInfo;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum View {
    List,
    Help,
    /// The table of the lock with this path.
    Inspect(ZnodePath),
    /// Whether to do this to these holders of the lock at this path.
    Confirm(Act, ZnodePath, Vec<ContenderInfo>),
}

/// A key, as far as the screen knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Char(char),
    Move(Move),
    Enter,
    Back,
    Erase,
    Suspend,
    /// Ends, whatever the screen shows.
    Interrupt,
    Other,
}

/// A way through a list or a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
}

/// What the shell has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Nothing,
    Quit,
    /// Stop the job.
    Suspend,
    /// Read who holds the lock, for a question.
    Ask(Act, ZnodePath),
    Act(Act, Vec<ContenderInfo>),
}

/// What is done to holders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// They are asked to release.
    Ask,
    /// The lock is taken away from them.
    Release,
}

impl Key {
    /// The letters that move, as in vi and less.
    pub(super) fn in_list_or_page(self) -> Self {
        match self {
            Self::Char('k') => Self::Move(Move::Up),
            Self::Char('j') => Self::Move(Move::Down),
            Self::Char('b') => Self::Move(Move::PageUp),
            Self::Char(' ') => Self::Move(Move::PageDown),
            Self::Char('g') => Self::Move(Move::First),
            Self::Char('G') => Self::Move(Move::Last),
            other => other,
        }
    }
}

impl Move {
    /// The line to go to from this one. It may be beyond the end.
    pub(super) fn from(self, at: usize, height: usize) -> usize {
        match self {
            Self::Up => at.saturating_sub(1),
            Self::Down => at.saturating_add(1),
            Self::PageUp => at.saturating_sub(height.max(1)),
            Self::PageDown => at.saturating_add(height.max(1)),
            Self::First => 0,
            Self::Last => usize::MAX,
        }
    }
}
