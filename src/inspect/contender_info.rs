use std::time::{Duration, SystemTime};

use super::identity::Identity;
use crate::error::HeldHere;
use crate::hold::is_request;
use crate::time::server_clock::instant;
use crate::wire::Stat;
use crate::znode::fencing_token::{FencingToken, from_czxid};
use crate::znode::name::Kind;
use crate::znode::path::ZnodePath;
use crate::znode::zxid::Zxid;

/// The role of a node in its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// The node's contender holds.
    Holder,
    /// The node's contender waits.
    Waiter,
    /// The node occupies room in the way of its recipe, which names the role: `start` in a rate limiter.
    Recipe(&'static str),
    /// The node's kind does not belong in this directory. A sequential node makes every acquire fail with
    /// [`ConflictingKind`](crate::Error::ConflictingKind); any other node blocks only Curator's contenders. A
    /// directory with the name of a contender holds nothing, and the contenders behind it wait until it is
    /// deleted.
    Foreign,
    /// Unknown: the sequence numbers of a read/write lock are exhausted, or the node was read without its
    /// queue.
    Unknown,
}

/// The clock by which an age was computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AgeClock {
    /// The servers' clock, as the last reply to a write of this session reported it, advanced since by this
    /// machine's steady clock. The age is never more than the true one, and less by at most a round trip.
    Server,
    /// This machine's time of day, since this session has written nothing yet. The error is the difference
    /// between the two clocks.
    Local,
}

/// A node of a queue, as the servers know it: part of a snapshot, see
/// [`LockQueue::inspect`](crate::LockQueue::inspect).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContenderInfo {
    pub(super) path: ZnodePath,
    pub(super) role: Role,
    pub(super) position: Option<u32>,
    pub(super) kind: Option<Kind>,
    pub(super) data: Option<Vec<u8>>,
    pub(super) stat: Stat,
    pub(super) age: Duration,
    pub(super) age_clock: AgeClock,
    pub(super) held_here: Option<HeldHere>,
    /// Of fencing tokens.
    pub(super) generation: u32,
}

impl ContenderInfo {
    /// The path of the node, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        &self.path
    }

    /// The name of the node.
    #[must_use]
    pub fn name(&self) -> &str {
        self.path.name()
    }

    /// The purpose of the node's contender. `None` for a node without a sequence number. A recipe's own
    /// label is known if a queue with that label was inspected.
    #[must_use]
    pub fn kind(&self) -> Option<Kind> {
        self.kind
    }

    /// The node's role in the queue. The queue's rule alone decides: an upgraded writer whose owner still
    /// keeps older read guards is reported as waiting for them.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// The same node in another role, for recipes that know more than their queues.
    #[must_use]
    pub fn with_role(self, role: Role) -> Self {
        Self { role, ..self }
    }

    /// How many nodes ahead the contender waits for: 0 for a holder. `None` for a node that is not in a
    /// queue.
    #[must_use]
    pub fn position(&self) -> Option<u32> {
        self.position
    }

    /// The node's data, at most the first 1024 bytes. `None` when the access list does not allow this client
    /// to read it.
    #[must_use]
    pub fn data(&self) -> Option<&[u8]> {
        self.data.as_deref()
    }

    /// The identity that the data claims. Every client may write any data.
    #[must_use]
    pub fn identity(&self) -> Identity {
        Identity::read(self.data.as_deref().unwrap_or_default())
    }

    /// The hold of this manager that rests on the node, if it is a hold of the manager that inspects: where
    /// its guard was acquired.
    #[must_use]
    pub fn held_here(&self) -> Option<HeldHere> {
        self.held_here
    }

    /// Whether the node received a revoke request, by a [`Revoker`](crate::Revoker) or Curator's.
    #[must_use]
    pub fn is_revoked(&self) -> bool {
        self.data().is_some_and(is_request)
    }

    /// The session that owns the node; 0 for a persistent node.
    #[must_use]
    pub fn session(&self) -> i64 {
        self.stat.ephemeral_owner
    }

    /// The transaction that created the node.
    #[must_use]
    pub fn czxid(&self) -> Zxid {
        self.stat.czxid
    }

    /// The fencing token of its grant, past or future, in the generation of the manager that inspects. If its
    /// process keeps the node from holder to holder, it is that of the first one: to fence, use
    /// [`mark_above`](FencingToken::mark_above), which is above all of them. `None` for readers and leases,
    /// whose nodes do not determine it: a reader may have been a writer, and a lease has the token of its
    /// turn in the semaphore's queue. Also `None` for labels of other recipes.
    #[must_use]
    pub fn fencing_token(&self) -> Option<FencingToken> {
        matches!(self.kind(), Some(Kind::LOCK | Kind::WRITE | Kind::LATCH))
            .then(|| from_czxid(self.stat.czxid, self.generation))
    }

    /// When the node was created, by the servers' clock.
    #[must_use]
    pub fn since(&self) -> SystemTime {
        instant(self.stat.ctime)
    }

    /// The age of the node when it was read, by the clock that [`age_clock`](Self::age_clock) names. The age
    /// counts from the create: a holder's age includes the time it waited.
    #[must_use]
    pub fn age(&self) -> Duration {
        self.age
    }

    /// The clock of the age.
    #[must_use]
    pub fn age_clock(&self) -> AgeClock {
        self.age_clock
    }

    /// The node's complete stat.
    #[must_use]
    pub fn stat(&self) -> &Stat {
        &self.stat
    }
}
