//! Where the locks of a run are, and the work of each task.

use std::time::Duration;

use lockkeeper::{ConnectionManager, Error, WorkQueue};
pub(crate) use lockkeeper_test_recipes::{SOAK_LOCKS, SoakLock};

/// The folder of all locks.
pub(crate) const LOCKS: &str = "/chaos/locks";
/// The folder of the registers that are written by guarded transactions, one for each lock.
pub(crate) const REGISTERS: &str = "/chaos/registers";

/// The counter that all clients add to.
pub(crate) const NUMBER: &str = "/chaos/numbers/visits";
/// The double barrier that the clients enter and leave, and how many members a round needs.
pub(crate) const BARRIER: &str = "/chaos/locks/rounds";
pub(crate) const MEMBERS: u32 = 2;
/// The partition whose items the clients share.
pub(crate) const PARTITION: &str = "/chaos/locks/partition";
/// The group of which each client is a member, and the registration that all clients want and one has.
pub(crate) const GROUP: &str = "/chaos/locks/group";
pub(crate) const SINGLE: &str = "/chaos/locks/single/node";
/// The services of a discovery, and the one of which each client is an instance.
pub(crate) const SERVICES: &str = "/chaos/locks/services";
pub(crate) const SERVICE: &str = "web";
/// The rate limiter of all clients: the starts in a window, and how long an admission is fresh.
pub(crate) const LIMITER: &str = "/chaos/limiter";
pub(crate) const STARTS: u32 = 40;
pub(crate) const WINDOW: Duration = Duration::from_secs(1);
pub(crate) const GRACE: Duration = Duration::from_millis(300);
/// The work queue whose items all clients put and end, and how often an item is taken at most. Outside the
/// locks, because its items stay.
pub(crate) const JOBS: &str = "/chaos/jobs";
pub(crate) const JOB_ATTEMPTS: u32 = 6;
/// The folder of the effects of items: each has a node of its own.
pub(crate) const EFFECTS: &str = "/chaos/effects";
/// The table whose entries all clients update, and these.
pub(crate) const TABLE: &str = "/chaos/table";
pub(crate) const ENTRIES: [&str; 3] = ["0", "1", "2"];
/// What every client does beside its locks.
pub(crate) const BESIDE: [&str; 7] = [COUNTING, FOLLOWING, MEETING, STARTING, PUTTING, ENDING, UPDATING];
pub(crate) const COUNTING: &str = "counter";
pub(crate) const FOLLOWING: &str = "view";
pub(crate) const MEETING: &str = "double barrier";
pub(crate) const STARTING: &str = "rate limiter";
pub(crate) const PUTTING: &str = "put";
pub(crate) const ENDING: &str = "work item";
pub(crate) const UPDATING: &str = "table";

/// The locks that multi-locks are made of.
pub(crate) fn members() -> impl Iterator<Item = &'static SoakLock> {
    SOAK_LOCKS.iter().filter(|soak_lock| soak_lock.name.starts_with("multi-"))
}

/// The lock of this name.
pub(crate) fn named(name: &str) -> Option<&'static SoakLock> {
    SOAK_LOCKS.iter().find(|soak_lock| soak_lock.name == name)
}

/// The items of the partition.
pub(crate) fn items() -> impl Iterator<Item = String> {
    (0..12).map(|number| format!("{number:02}"))
}

/// The name of an item's lock.
pub(crate) fn lock_of(item: &str) -> String {
    format!("partition/{item}")
}

/// The work queue of all clients.
pub(crate) fn jobs(manager: &ConnectionManager) -> Result<WorkQueue<String>, Error> {
    WorkQueue::new(manager, JOBS)?.with_max_attempts(JOB_ATTEMPTS)
}

/// The name of the lock that the claim of an item of the work queue is.
pub(crate) fn lock_of_job(item: &str) -> String {
    format!("{JOB}{item}")
}

/// The item of the work queue whose claim this lock is.
pub(crate) fn job_of(lock: &str) -> Option<&str> {
    lock.strip_prefix(JOB)
}

const JOB: &str = "jobs/";

/// An item that every client fails.
pub(crate) fn is_bad(item: &str) -> bool {
    item.bytes().map(u32::from).sum::<u32>().is_multiple_of(12)
}

/// What the nodes of an item's effects begin with.
pub(crate) fn effect_of(item: &str) -> String {
    format!("{EFFECTS}/{item}-")
}

/// The item whose effect has a node of this name: a number follows the item.
pub(crate) fn item_of_effect(name: &str) -> &str {
    name.rsplit_once('-').map_or(name, |(item, _)| item)
}

/// The name of a registration.
pub(crate) fn name_of(path: &str) -> &str {
    path.strip_prefix(LOCKS).and_then(|rest| rest.strip_prefix('/')).unwrap_or(path)
}

/// The names of the members of the group and of the instances of the service begin so.
pub(crate) const MEMBER: &str = "group/";
pub(crate) const INSTANCE: &str = "services/web/";

/// The item whose lock has this name.
pub(crate) fn item_of(lock: &str) -> Option<&str> {
    lock.strip_prefix("partition/")
}

/// The path of the lock.
pub(crate) fn path_of(soak_lock: &SoakLock) -> String {
    format!("{LOCKS}/{}", soak_lock.name)
}

/// The register that the holders of the lock write.
pub(crate) fn register_of(soak_lock: &SoakLock) -> String {
    format!("{REGISTERS}/{}", soak_lock.name)
}

/// The work that one task of a client repeats.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work {
    /// Acquires this lock.
    Lock(&'static SoakLock),
    /// Takes some members of the multi-lock together.
    Several,
    /// Takes one of them alone.
    Single,
    /// Asks for the values of once cells.
    Cells,
}

/// The work of every task of a client, in the order of the tasks.
pub(crate) fn work() -> impl Iterator<Item = Work> {
    let alone =
        SOAK_LOCKS.iter().flat_map(|soak_lock| std::iter::repeat_n(Work::Lock(soak_lock), soak_lock.tasks));
    alone.chain([Work::Several, Work::Single, Work::Cells])
}

impl Work {
    /// Whether this work acquires the lock at times.
    pub(crate) fn takes(self, soak_lock: &SoakLock) -> bool {
        match self {
            Self::Lock(own) => own.name == soak_lock.name,
            Self::Cells => false,
            Self::Several | Self::Single => members().any(|member| member.name == soak_lock.name),
        }
    }
}
