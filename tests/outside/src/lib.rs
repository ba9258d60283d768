//! A turnstile over all processes: one visitor at a time, every visit counted, and a number of visits in all.

mod error;

use lockkeeper_core::{
    ConnectionManager, ContenderInfo, Deadline, Error, Hold, Label, LockQueue, ReleaseError, Rule, ZnodePath,
};

pub use self::error::TurnstileError;

/// The contenders of a turnstile. Those of a mutex on the same path are refused, and it refuses ours.
pub const TURN: Label = match Label::new("turn-") {
    Ok(label) => label,
    Err(_) => panic!("not a label"),
};

/// Each visitor waits for every visitor ahead.
const RULE: Rule = Rule::blocked_by(&[TURN.kind()]);

/// Admits one visitor at a time, and so many in all.
pub struct Turnstile {
    queue: LockQueue,
    visits: ZnodePath,
    limit: u64,
}

impl Turnstile {
    /// Makes the turnstile at `path`, below the manager's chroot. Sends nothing.
    pub fn new(manager: &ConnectionManager, path: &str, limit: u64) -> Result<Self, Error> {
        let path: ZnodePath = path.parse()?;
        let queue = LockQueue::new(manager, path.child("queue")?, TURN, RULE)?.with_metric_name("turnstile");
        Ok(Self { queue, visits: path.child("visits")?, limit })
    }

    /// Waits for its turn, and counts the visit.
    ///
    /// # Errors
    ///
    /// [`TurnstileError`], by [`Error::recipe`]. Otherwise as [`LockQueue::acquire`].
    ///
    /// # Cancel safety
    ///
    /// No node of the queue is left behind. The visit may be counted.
    pub async fn enter(&self, deadline: Deadline) -> Result<Visit, Error> {
        let hold = self.queue.acquire(deadline).await?;
        let path = || self.visits.to_string();
        let counted = hold.manager().znodes().read(&self.visits).await?;
        let number = match &counted {
            None => 0,
            Some((data, _)) => {
                let number = std::str::from_utf8(data).ok().and_then(|text| text.parse().ok());
                number.ok_or_else(|| TurnstileError::NoNumber { path: path() })?
            }
        };
        if number >= self.limit {
            return Err(TurnstileError::Full { path: path(), visits: number }.into());
        }
        let number = number + 1;
        let data = number.to_string().into_bytes();
        // Written only if the node of the hold exists, whatever happened to this process in between.
        let txn = match counted {
            None => hold.txn().create(self.visits.clone(), data),
            Some((_, stat)) => hold.txn().set(self.visits.clone(), data, stat.version),
        };
        txn.commit().await.map_err(TurnstileError::from)?;
        Ok(Visit { hold, number })
    }

    /// The visitor and the waiters, in the order of the queue.
    pub async fn inspect(&self) -> Result<Vec<ContenderInfo>, Error> {
        self.queue.inspect().await
    }
}

/// A visit. Dropping it lets the next visitor in.
#[must_use = "a visit that is not kept is over at once"]
pub struct Visit {
    hold: Hold,
    number: u64,
}

impl Visit {
    /// The number of the visit, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// What every hold has: whether it is valid, when it is lost, its fencing token, and writes that are
    /// committed only while its node exists.
    pub fn hold(&self) -> &Hold {
        &self.hold
    }

    /// Lets the next visitor in, and waits until the server has done so.
    pub async fn leave(self) -> Result<(), ReleaseError> {
        self.hold.release().await
    }
}
