use std::fmt::Debug;
use std::future::{pending, ready};

use futures::future::BoxFuture;
use lockkeeper::{BootInstant, Error, FencingToken, Hold, ReleaseError, Txn};
use lockkeeper_core::NodeMonitor;

use crate::Target;

/// A grant of any recipe.
pub type Granted = Box<dyn Grant>;

/// What an acquire returned, until it is released.
pub trait Grant: Debug + Send + Sync + 'static {
    /// The holds in it, in the order in which they were granted.
    fn holds(&self) -> Vec<&Hold>;

    /// What the holder may rely on while the grant is valid: one claim for each hold, in the order of the
    /// holds.
    fn claims(&self) -> Vec<Claim> {
        self.holds().into_iter().map(Claim::exclusive).collect()
    }

    /// Whether all its holds are valid.
    fn is_valid(&self) -> bool {
        self.holds().into_iter().all(Hold::is_valid)
    }

    /// Until when all its holds are valid, as far as is known.
    fn valid_until(&self) -> BootInstant {
        let first = self.holds().into_iter().map(Hold::valid_until).min();
        first.unwrap_or_else(BootInstant::now)
    }

    /// Resolves when the first of its holds is lost.
    fn lost(&self) -> BoxFuture<'_, ()> {
        Box::pin(async { drop(Hold::lost_any(&self.holds()).await) })
    }

    /// Releases it.
    fn release(self: Box<Self>) -> BoxFuture<'static, Result<(), ReleaseError>>;

    /// Whether its node may exist after the release, because the process keeps it.
    fn may_outlive_release(&self) -> bool {
        false
    }

    /// The monitor of its node, where the simulation is to use one.
    fn monitor(&self) -> Option<NodeMonitor> {
        None
    }

    /// Writes under the grant, where it is exclusive at the path of the lock.
    fn txn(&self) -> Option<Txn<'_>> {
        None
    }

    /// The starts that it permits, where it is no hold at all.
    fn starts(&self) -> Option<Starts> {
        None
    }

    /// The slot of a schedule that it is, where it is one.
    fn due_slot(&self) -> Option<DueSlot> {
        None
    }

    /// Resolves when its holder is asked to give it up; never, where nobody asks.
    fn release_requested(&self) -> BoxFuture<'_, ()> {
        Box::pin(pending())
    }

    /// Acquires it once more for its owner, and releases that. Returns the token; `None` if the recipe has no
    /// owners.
    fn acquire_again(&self, target: Target) -> BoxFuture<'_, Result<Option<FencingToken>, Error>> {
        drop(target);
        Box::pin(ready(Ok(None)))
    }

    /// Whether it can be [converted](Self::convert).
    fn can_convert(&self) -> bool {
        false
    }

    /// Turns a write into a read, and a read into a write if nobody else reads.
    fn convert(self: Box<Self>) -> BoxFuture<'static, Result<Option<Granted>, Error>> {
        drop(self);
        Box::pin(ready(Ok(None)))
    }

    /// What else its owner may do while it is held. The error is a broken rule.
    fn check_owner(&self, target: Target) -> BoxFuture<'_, Result<(), String>> {
        drop(target);
        Box::pin(ready(Ok(())))
    }
}

/// What a hold says of itself in one directory.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The nodes of the hold: one, or one for each permit. All in one directory.
    pub nodes: Vec<String>,
    /// The fencing token.
    pub token: u64,
    /// How often the node was handed off before.
    pub handover: u32,
    /// The token is an earlier hold's, as that of a downgraded reader, and not its node's.
    pub is_inherited: bool,
    /// What others may hold at the same time.
    pub share: Share,
    /// Other nodes of the holder, which never block it.
    pub ignored: Vec<String>,
}

/// What others may hold at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Nothing: a mutex, a writer. Its token is greater than all earlier ones of its directory.
    Exclusive,
    /// The same: a reader. Its token is greater than those of all earlier writers.
    Shared,
    /// Permits, as long as all of them together are within the limit. Its token is unique.
    Permits {
        /// The permits of this hold.
        permits: u32,
        /// The permits of all holds.
        limit: u32,
    },
}

/// Starts, of at most `limit` in any window.
#[derive(Clone, Debug)]
pub struct Starts {
    /// The path of the limiter.
    pub path: String,
    /// The number of starts.
    pub count: u32,
    /// The number of starts in a window.
    pub limit: u32,
    /// The window in milliseconds.
    pub window: u64,
}

/// A slot of a schedule that is due.
#[derive(Clone, Debug)]
pub struct DueSlot {
    /// The directory of the records of slots that were done.
    pub records: String,
    /// When the slot began, in milliseconds since 1970, as its record is named.
    pub slot: u64,
}

impl Claim {
    /// The claim of a hold that excludes all others.
    pub fn exclusive(hold: &Hold) -> Self {
        Self::of(hold, Share::Exclusive)
    }

    /// The claim of a hold.
    pub fn of(hold: &Hold, share: Share) -> Self {
        let nodes: Vec<String> = hold.paths().map(|path| path.to_string()).collect();
        Self {
            // A lease has the token of the node that waited for it.
            is_inherited: nodes.iter().any(|node| node.contains("/leases/")),
            nodes,
            token: hold.fencing_token().as_u64(),
            handover: hold.fencing_token().handover(),
            share,
            ignored: Vec::new(),
        }
    }

    /// The directory of its nodes, where its rivals are.
    #[must_use]
    pub fn directory(&self) -> &str {
        self.nodes.first().and_then(|node| node.rsplit_once('/')).map_or("", |(directory, _)| directory)
    }

    /// Whether it is the same grant, as the second hold of a reentrant lock is.
    #[must_use]
    pub fn is_same_as(&self, other: &Self) -> bool {
        self.nodes == other.nodes && self.handover == other.handover
    }
}

impl Share {
    /// The number of permits of all holds together. `None` if the lock has no permits.
    #[must_use]
    pub fn limit(self) -> Option<u32> {
        match self {
            Self::Permits { limit, .. } => Some(limit),
            Self::Exclusive | Self::Shared => None,
        }
    }

    /// The number of permits of this hold.
    #[must_use]
    pub fn permits(self) -> u32 {
        match self {
            Self::Permits { permits, .. } => permits,
            Self::Exclusive | Self::Shared => 0,
        }
    }

    /// Whether the two exclude each other.
    #[must_use]
    pub fn excludes(self, other: Self) -> bool {
        !matches!((self, other), (Self::Shared, Self::Shared) | (Self::Permits { .. }, Self::Permits { .. }))
    }
}
