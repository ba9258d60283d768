use std::fmt::{self, Display, Formatter};

/// How much a view may keep. Beyond that it reports [`ViewState::TooLarge`](crate::ViewState::TooLarge)
/// instead of using more memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewBounds {
    nodes: usize,
    bytes: usize,
    events: usize,
}

/// The bound that a tree exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Exceeded {
    /// The number of nodes.
    Nodes,
    /// The bytes of data and paths.
    Bytes,
}

impl ViewBounds {
    /// The most nodes that the view keeps. Default: 1,000,000.
    #[must_use]
    pub fn nodes(self, nodes: usize) -> Self {
        Self { nodes, ..self }
    }

    /// The most bytes of data and of paths that the view keeps. Default: 1 GiB.
    #[must_use]
    pub fn bytes(self, bytes: usize) -> Self {
        Self { bytes, ..self }
    }

    /// The most changed nodes that the view has yet to read. Default: 65,536. If more nodes change, the view
    /// forgets these events, and compares all nodes instead: nothing is missed.
    #[must_use]
    pub fn events(self, events: usize) -> Self {
        Self { events: events.max(1), ..self }
    }

    pub(super) fn nodes_max(self) -> usize {
        self.nodes
    }

    pub(super) fn bytes_max(self) -> usize {
        self.bytes
    }

    pub(super) fn events_max(self) -> usize {
        self.events
    }
}

impl Default for ViewBounds {
    fn default() -> Self {
        Self { nodes: 1_000_000, bytes: 1 << 30, events: 65_536 }
    }
}

impl Display for Exceeded {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Nodes => "more nodes than its bound allows",
            Self::Bytes => "more bytes than its bound allows",
        })
    }
}
