use std::time::{Duration, SystemTime};

use super::identity::Identity;
use crate::queue::{Kind, REVOKE};
use crate::wire::Stat;
use crate::znode::fencing_token::FencingToken;

/// What a node does in its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// It holds.
    Holder,
    /// It waits.
    Waiter,
    /// A start that a rate limiter has written down: it takes its room in the window.
    Start,
    /// It is of no kind that belongs here. Numbered, it makes every acquire fail with
    /// [`ConflictingKind`](crate::Error::ConflictingKind); else it is in nobody's way but Curator's.
    Foreign,
    /// Not known: the numbers of a read/write lock are used up, or it was not looked at together with its line.
    Unknown,
}

/// By which clock an age was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AgeClock {
    /// By the servers' own, as the last answer to a write of this session told it, carried on since by this machine's steady
    /// clock. The age is never more than the true one, and less by at most a round trip.
    Server,
    /// By this machine's time of day, since this session has written nothing yet. It is as wrong as the two clocks differ.
    Local,
}

/// One node of a line, as the servers know it: a part of a snapshot, see [`LockQueue::inspect`](super::super::LockQueue::inspect).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContenderInfo {
    pub(super) path: String,
    pub(super) role: Role,
    pub(super) position: Option<usize>,
    pub(super) kind: Option<Kind>,
    pub(super) data: Option<Vec<u8>>,
    pub(super) stat: Stat,
    pub(super) age: Duration,
    pub(super) age_clock: AgeClock,
}

impl ContenderInfo {
    /// The whole path of its node, chroot included.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The name of its node.
    #[must_use]
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// What it contends for; `None` for a node without a number. A label of a recipe's own is known if a queue with
    /// that label was inspected.
    #[must_use]
    pub fn kind(&self) -> Option<Kind> {
        self.kind
    }

    /// What it does in the line. By the line's rule alone: a writer that has upgraded, and whose owner still keeps older read
    /// guards, is told to wait for them.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// The same node in another role, for recipes that know more than their lines.
    #[must_use]
    pub fn with_role(self, role: Role) -> Self {
        Self { role, ..self }
    }

    /// How many in front it waits for: 0 for a holder. `None` for a node that stands in no line.
    #[must_use]
    pub fn position(&self) -> Option<usize> {
        self.position
    }

    /// What is in the node, at most the first 1024 bytes; `None` when the access list does not let us read it.
    #[must_use]
    pub fn data(&self) -> Option<&[u8]> {
        self.data.as_deref()
    }

    /// Who it says it is. Anyone may write anything there.
    #[must_use]
    pub fn identity(&self) -> Identity {
        Identity::read(self.data.as_deref().unwrap_or_default())
    }

    /// Whether it was asked to let go, by a [`Revoker`](crate::Revoker) or Curator's.
    #[must_use]
    pub fn is_revoked(&self) -> bool {
        self.data() == Some(REVOKE)
    }

    /// The session it goes with; 0 for a node that stays.
    #[must_use]
    pub fn session(&self) -> i64 {
        self.stat.ephemeral_owner
    }

    /// The transaction that made it.
    #[must_use]
    pub fn czxid(&self) -> u64 {
        self.stat.czxid.unsigned_abs()
    }

    /// The fencing token of its grant, as holder or once it holds. `None` for readers and leases, whose nodes do not tell: a
    /// reader may have been a writer, and a lease has the token of its turn. `None` for labels of other recipes, too.
    #[must_use]
    pub fn fencing_token(&self) -> Option<FencingToken> {
        matches!(self.kind(), Some(Kind::LOCK | Kind::WRITE))
            .then(|| FencingToken::from_czxid(self.stat.czxid))
    }

    /// When it was made, by the servers' clock.
    #[must_use]
    pub fn since(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(self.stat.ctime.max(0).unsigned_abs())
    }

    /// How long ago it was made when it was read, by the clock that [`age_clock`](Self::age_clock) names. A place counts from its
    /// beginning: a holder's age includes the time it waited.
    #[must_use]
    pub fn age(&self) -> Duration {
        self.age
    }

    /// By which clock the age is told.
    #[must_use]
    pub fn age_clock(&self) -> AgeClock {
        self.age_clock
    }

    /// All that the servers tell about the node.
    #[must_use]
    pub fn stat(&self) -> &Stat {
        &self.stat
    }
}
