use lockkeeper_core::{ConnectionManager, ContenderInfo, Kind, Role, WholePath, ZnodePath, count_of};

use super::window_info::WindowInfo;

/// What the holders of a semaphore are.
pub(crate) const PERMITS: &str = "permits out";

/// The holders and the waiters of a lock, with their ages: the result of `inspect()` of every recipe with
/// holders in a queue. Other recipes have results of their own.
///
/// It is a snapshot for people and tools, and may be stale when it is read. It grants nothing and promises
/// nothing: check the guard ([`Hold::check`](lockkeeper_core::Hold::check)), and write under
/// [`Hold::txn`](lockkeeper_core::Hold::txn). It is no older than the call, unless the servers' leader was
/// deposed and does not know it.
///
/// An inspection writes nothing, enters no queue and needs only the right to read. Its order is that of the
/// queue.
///
/// # Format
///
/// `{}` prints the first rows of a table for a terminal, and `{:#}` all rows.
///
/// * **POSITION** is that among the waiters, from 1.
/// * **AGE** counts from the creation of the node, so the age of a holder includes its wait. It uses the
///   servers' clock, known from the last answer to a write of this session, and is never more than the true
///   age. If this session has written nothing, it uses this machine's time of day, and is marked `~`; its
///   error is the difference of the two clocks.
/// * **HOLDER** is the data of the node, escaped and shortened. Any client can write any data there.
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
    pub(crate) recipe: InspectedRecipe,
    pub(crate) path: ZnodePath,
    /// For the headline.
    pub(crate) whole: WholePath,
    pub(crate) limit: Option<u32>,
    pub(crate) contenders: Vec<ContenderInfo>,
    /// Of a rate limiter.
    pub(crate) window: Option<WindowInfo>,
}

/// What the headline says of a recipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InspectedRecipe {
    pub(crate) name: &'static str,
    /// For a recipe with a limit: what its holders are, such as `permits out`.
    pub(crate) counted: Option<&'static str>,
}

impl Inspection {
    pub(crate) fn of(
        recipe: InspectedRecipe,
        manager: &ConnectionManager,
        path: &ZnodePath,
        limit: Option<u32>,
        contenders: Vec<ContenderInfo>,
    ) -> Self {
        Self { recipe, path: path.clone(), whole: manager.whole_path(path), limit, contenders, window: None }
    }

    /// The name of the recipe: `mutex`, `read/write lock`, `semaphore`, `rate limiter` or `election`.
    #[must_use]
    pub fn recipe(&self) -> &'static str {
        self.recipe.name
    }

    /// The path of the lock on the server, with the manager's chroot, for people.
    #[must_use]
    pub fn whole_path(&self) -> &WholePath {
        &self.whole
    }

    /// The path of the lock, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        &self.path
    }

    /// Whether the waiters wait for permits, of which each holder has one.
    pub(crate) fn has_permits(&self) -> bool {
        self.recipe.counted == Some(PERMITS) || self.holders().any(|of| of.kind() == Some(Kind::LEASE))
    }

    /// The limit of permits, or of starts in a window. `None` for a lock without such a limit, or if the node
    /// of a shared limit has no limit.
    #[must_use]
    pub fn limit(&self) -> Option<u32> {
        self.limit
    }

    /// The number of free permits or starts, without regard to waiters.
    #[must_use]
    pub fn free(&self) -> Option<u32> {
        Some(self.limit?.saturating_sub(self.used()))
    }

    /// The number of permits out, or of starts that count.
    pub(crate) fn used(&self) -> u32 {
        self.window.map_or_else(|| count_of(self.holders().count()), |window| window.used)
    }

    /// The window of a rate limiter. `None` for other recipes.
    #[must_use]
    pub fn window(&self) -> Option<WindowInfo> {
        self.window
    }

    /// Every node: first the holders, then the waiters, both in the order of the queue, then foreign nodes.
    #[must_use]
    pub fn contenders(&self) -> &[ContenderInfo] {
        &self.contenders
    }

    /// The holders: one for each permit of a semaphore, and none for a rate limiter, which has a
    /// [`window`](Self::window).
    pub fn holders(&self) -> impl Iterator<Item = &ContenderInfo> {
        self.contenders.iter().filter(|of| matches!(of.role(), Role::Holder | Role::Recipe(_)))
    }

    /// The waiters. The first one is the next to hold.
    pub fn waiters(&self) -> impl Iterator<Item = &ContenderInfo> {
        self.contenders.iter().filter(|of| of.role() == Role::Waiter)
    }
}

/// Sorts holders first, for a queue with both holders and waiters.
pub(crate) fn holders_first(mut contenders: Vec<ContenderInfo>) -> Vec<ContenderInfo> {
    contenders.sort_by_key(|of| match of.role() {
        Role::Holder | Role::Recipe(_) => 0,
        Role::Waiter => 1,
        Role::Unknown => 2,
        _ => 3,
    });
    contenders
}

/// The queue for permits or starts: every contender in it waits.
pub(crate) fn waiting(queue: Vec<ContenderInfo>) -> impl Iterator<Item = ContenderInfo> {
    queue.into_iter().map(|of| match of.role() {
        Role::Holder => of.with_role(Role::Waiter),
        _ => of,
    })
}
