mod table;

use lockkeeper_core::{ContenderInfo, Role, ZnodePath};

/// Who holds a lock, who waits for it, and since when: what `inspect()` of every recipe tells.
///
/// A snapshot for people and for tools, which may be out of date when it is read. It grants nothing and promises nothing: ask a
/// guard ([`Hold::check`](lockkeeper_core::Hold::check)) whether it holds, and write under
/// [`Hold::txn`](lockkeeper_core::Hold::txn). It is no older than the call, unless the servers' leader had been deposed
/// without knowing it.
///
/// Taking it writes nothing, joins no line and needs the right to read alone. Its order is that of the line.
///
/// # Printing it
///
/// As a table for a terminal, the first rows of it: `{}`; all of it: `{:#}`.
///
/// * A **place** is that among those who wait, from 1.
/// * An **age** counts from the making of the node: a holder's includes the time it waited. It is told by the servers' clock
///   as the last answer to a write of this session told it, and is then never more than the true one. Where this session has
///   written nothing it is told by this machine's time of day, marked `~`, and is as wrong as the two clocks differ.
/// * **Who** is what the node says, escaped and shortened; anyone may write anything there.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let manager = lockkeeper::ConnectionManager::connect(&server.connect_string()).await?;
/// use lockkeeper::Mutex;
///
/// let mutex = Mutex::new(&manager, "/locks/train-7")?;
/// let guard = mutex.acquire().await?;
/// let waiting = mutex.enqueue().await?;
///
/// let seen = mutex.inspect().await?;
/// println!("{seen}");
/// let holder = seen.holders().next().expect("it is held");
/// assert_eq!(holder.path(), guard.path());
/// assert_eq!(holder.fencing_token(), Some(guard.fencing_token()));
/// assert_eq!(holder.identity().pid(), Some(std::process::id()));
/// assert_eq!(seen.waiters().count(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    pub(crate) what: RecipeKind,
    pub(crate) path: ZnodePath,
    pub(crate) limit: Option<usize>,
    pub(crate) contenders: Vec<ContenderInfo>,
}

/// What was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecipeKind {
    Mutex,
    RwLock,
    Semaphore,
    RateLimiter,
}

impl Inspection {
    /// The whole path of the lock, chroot included.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        &self.path
    }

    /// How many permits there are in all, or starts in a window; `None` for a lock that has no such limit, or a shared limit
    /// whose node keeps none.
    #[must_use]
    pub fn limit(&self) -> Option<usize> {
        self.limit
    }

    /// How many permits, or starts, are free, waiting takers left out of account.
    #[must_use]
    pub fn free(&self) -> Option<usize> {
        Some(self.limit?.saturating_sub(self.holders().count()))
    }

    /// Every node: who holds, then who waits, each in the order of the line, then strays.
    #[must_use]
    pub fn contenders(&self) -> &[ContenderInfo] {
        &self.contenders
    }

    /// Who holds: one for each permit of a semaphore, and each start that counts of a rate limiter.
    pub fn holders(&self) -> impl Iterator<Item = &ContenderInfo> {
        self.contenders.iter().filter(|of| matches!(of.role(), Role::Holder | Role::Start))
    }

    /// Who waits, the next to hold first.
    pub fn waiters(&self) -> impl Iterator<Item = &ContenderInfo> {
        self.contenders.iter().filter(|of| of.role() == Role::Waiter)
    }
}

/// Holders first, for lines in which both stand together.
pub(crate) fn holders_first(mut contenders: Vec<ContenderInfo>) -> Vec<ContenderInfo> {
    contenders.sort_by_key(|of| match of.role() {
        Role::Holder | Role::Start => 0,
        Role::Waiter => 1,
        Role::Unknown => 2,
        _ => 3,
    });
    contenders
}

/// The line in front of something of which others hold their part: whoever stands in it waits.
pub(crate) fn waiting(line: Vec<ContenderInfo>) -> impl Iterator<Item = ContenderInfo> {
    line.into_iter().map(|of| match of.role() {
        Role::Holder => of.with_role(Role::Waiter),
        _ => of,
    })
}
