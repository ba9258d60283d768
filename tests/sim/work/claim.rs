use lockkeeper::Hold;

/// What a hold says of itself for one path: all that the oracle has to know of it.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    /// The nodes that stand for it: one, or one for each permit. All in one directory.
    pub(crate) nodes: Vec<String>,
    pub(crate) token: u64,
    /// How often the node was handed over before, where it is kept.
    pub(crate) handover: u32,
    /// The token is an earlier hold's, as that of a downgraded reader, and not its node's.
    pub(crate) is_inherited: bool,
    pub(crate) share: Share,
    /// Other nodes of the holder, which are never in its way.
    pub(crate) beside: Vec<String>,
}

/// What others may have at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    /// Nothing: a mutex, a writer. Its token is above all earlier ones of its directory.
    Exclusive,
    /// The same: a reader. Its token is above all earlier writers'.
    Shared,
    /// So many that together they are no more than the limit. Its token is its own.
    Permits { permits: usize, limit: usize },
}

impl Claim {
    pub(crate) fn exclusive(hold: &Hold) -> Self {
        Self::of(hold, Share::Exclusive)
    }

    pub(crate) fn of(hold: &Hold, share: Share) -> Self {
        let nodes: Vec<String> = hold.paths().map(str::to_owned).collect();
        Self {
            beside: Vec::new(),
            // A lease has the token of the turn in which it was taken.
            is_inherited: nodes.iter().any(|node| node.contains("/leases/")),
            nodes,
            token: hold.fencing_token().as_u64(),
            handover: hold.fencing_token().handover(),
            share,
        }
    }

    /// The directory in which its rivals are.
    pub(crate) fn directory(&self) -> &str {
        self.nodes.first().and_then(|node| node.rsplit_once('/')).map_or("", |(directory, _)| directory)
    }

    /// Whether it is the same grant, as the second hold of a reentrant lock is.
    pub(crate) fn is_same_as(&self, other: &Self) -> bool {
        self.nodes == other.nodes && self.handover == other.handover
    }
}

impl Share {
    /// How many permits `self` and its valid rivals may have together; `None` where that is no question of numbers.
    pub(crate) fn limit(self) -> Option<usize> {
        match self {
            Self::Permits { limit, .. } => Some(limit),
            Self::Exclusive | Self::Shared => None,
        }
    }

    pub(crate) fn permits(self) -> usize {
        match self {
            Self::Permits { permits, .. } => permits,
            Self::Exclusive | Self::Shared => 0,
        }
    }

    /// Whether the two exclude each other.
    pub(crate) fn excludes(self, other: Self) -> bool {
        !matches!((self, other), (Self::Shared, Self::Shared) | (Self::Permits { .. }, Self::Permits { .. }))
    }
}
