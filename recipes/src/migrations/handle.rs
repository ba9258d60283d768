use std::collections::{BTreeMap, HashSet};
use std::fmt::{self, Debug, Formatter};
use std::future::Future;

use lockkeeper_core::{ConfigError, ConnectionManager, Error, IntoPath, Once, Txn, ZnodePath, count_of};

use super::error::MigrationError;
use super::record::{RecordVerdict, name_of, position_of};
use super::step::MigrationStep;
use crate::limits::own_path;
use crate::mutex::{Mutex, MutexGuard};

/// Named steps that change what is stored in ZooKeeper: in their order, and each once over the whole fleet.
///
/// Every process of the fleet makes the same steps and calls [`run`](Self::run) when it starts. One does what
/// is left to do, and the others wait for it. A step is one transaction, which also records it: it is done
/// and recorded, or neither. A step that was done must stay as it is; give a step another version if its
/// writes change while it has not been done anywhere.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let manager = lockkeeper::ConnectionManager::connect(&server.connect_string()).await?;
/// use lockkeeper::Migrations;
///
/// let migrations = Migrations::new(&manager, "/migrations/shop")?
///     .step("create the limits", 1, async |manager| {
///         Ok(manager.txn().create("/limits", "").create("/limits/alice", "10"))
///     })
///     .step("double the limits", 1, async |manager| {
///         let (limit, stat) = manager.znodes().read("/limits/alice").await?.expect("it was created");
///         let limit: u32 = String::from_utf8_lossy(&limit).parse().expect("a number");
///         Ok(manager.txn().set("/limits/alice", (limit * 2).to_string(), stat.version))
///     });
/// assert_eq!(migrations.run().await?.steps, ["create the limits", "double the limits"]);
/// assert!(migrations.run().await?.steps.is_empty()); // they were done before
/// assert_eq!(manager.znodes().read("/limits/alice").await?.expect("it exists").0, b"20");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Migrations {
    manager: ConnectionManager,
    path: ZnodePath,
    steps: Vec<MigrationStep>,
}

/// How often a call takes the lock, if the lock is lost or an answer does not come.
const TRIES_MAX: u32 = 5;

/// Why the steps were not done under one hold.
enum MigrationFailure {
    /// The hold was lost, or the outcome of a step is unknown: the records tell.
    Commit(Error),
    /// For another reason.
    Other(Error),
}

impl From<Error> for MigrationFailure {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

/// What one call of [`Migrations::run`] did.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StepsDone {
    /// The names of the steps that this call did, in their order. Of a step whose answer was lost, the call
    /// that finds it done may be another one, which does not name it.
    pub steps: Vec<String>,
}

impl Migrations {
    /// Makes migrations without steps, with their records at `path`, below the manager's chroot. Sends
    /// nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the path is malformed or the root.
    pub fn new(manager: &ConnectionManager, path: impl IntoPath) -> Result<Self, Error> {
        let path = own_path(path, "give the migrations a path of their own")?;
        Ok(Self { manager: manager.clone(), path, steps: Vec::new() })
    }

    /// Adds a step behind the others. `work` reads what it needs, and returns the writes of the step as a
    /// transaction of the manager that it gets ([`ConnectionManager::txn`]). They are committed together with
    /// the record, while this process holds the lock of the migrations.
    ///
    /// `work` may be called several times, also by several processes, if an answer is lost or the lock is. So
    /// what it writes by itself must do no harm when it is repeated, such as
    /// [`Znodes::ensure`](lockkeeper_core::Znodes::ensure) for the parents of new nodes. One step has room in
    /// one request, of a megabyte: make several of more.
    ///
    /// `version` is recorded, too. Raise it with each change of what the step writes: then a process whose
    /// step differs from the one that was done is told so.
    #[must_use]
    pub fn step<F>(
        mut self,
        name: impl Into<String>,
        version: u32,
        work: impl Fn(ConnectionManager) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Txn<'static>, Error>> + Send + 'static,
    {
        self.steps.push(MigrationStep::new(name.into(), version, work));
        self
    }

    /// The path of the records, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        &self.path
    }

    /// Does the steps that are left to do, in their order, or waits until another process has done them.
    /// Waits for the lock without a limit of time: bound it by a timeout of the caller.
    ///
    /// # Errors
    ///
    /// [`MigrationError::Changed`] and [`MigrationError::Ahead`]: the steps of this program are not those
    /// that were done, and nothing was done by this call. [`MigrationError::Failed`] names the step that
    /// failed, and has its error. [`Error::Config`] for a step without a name, or two with one name.
    /// Otherwise as [`Mutex::acquire`](crate::Mutex::acquire), and [`Error::Refused`] (no right to read the
    /// records).
    ///
    /// # Session loss
    ///
    /// A lost hold is acquired again, up to four times, and the records tell what is left to do.
    ///
    /// # Cancel safety
    ///
    /// The step in progress may be done, once. The next call goes on.
    pub async fn run(&self) -> Result<StepsDone, Error> {
        self.check_names()?;
        let mut steps = Vec::new();
        if self.left().await?.is_empty() {
            return Ok(StepsDone { steps });
        }
        let mutex = Mutex::new(&self.manager, self.path.child("lock")?)?;
        for tries_left in (0..TRIES_MAX).rev() {
            let guard = mutex.acquire().await?;
            let done = self.run_under(&guard, &mut steps).await;
            // What was done is done, whatever has become of the lock.
            drop(guard.release().await);
            match done {
                Ok(()) => break,
                // The records tell whether it was done.
                Err(MigrationFailure::Commit(_)) if tries_left > 0 => {}
                Err(MigrationFailure::Commit(error) | MigrationFailure::Other(error)) => return Err(error),
            }
        }
        Ok(StepsDone { steps })
    }

    /// Does the steps that have no record.
    async fn run_under(&self, guard: &MutexGuard, done: &mut Vec<String>) -> Result<(), MigrationFailure> {
        for (position, step) in self.left().await? {
            let failed = |cause: Error| -> Error {
                let (path, name) = (self.manager.whole_path(&self.path), step.name.clone());
                MigrationError::Failed { path, name, cause }.into()
            };
            let writes = step.writes(&self.manager).await.map_err(failed)?;
            let once = guard.txn().and(writes).once(self.record_path(position)?).with_data(step.record());
            match once.commit().await {
                Ok(Once::Committed(_)) => done.push(step.name.clone()),
                // An earlier try: no other process has done it while this one holds the lock.
                Ok(Once::Before) => {}
                Err(error) if error.is_lost() || error.outcome_unknown() => {
                    return Err(MigrationFailure::Commit(failed(error.into())));
                }
                Err(error) => return Err(failed(error.into()).into()),
            }
        }
        Ok(())
    }

    fn record_path(&self, position: u32) -> Result<ZnodePath, Error> {
        Ok(self.path.child("done")?.child(&name_of(position))?)
    }

    /// The records, by position.
    async fn records(&self) -> Result<BTreeMap<u32, String>, Error> {
        let (znodes, done) = (self.manager.znodes(), self.path.child("done")?);
        let mut records = BTreeMap::new();
        for name in znodes.children(&done).await?.unwrap_or_default() {
            let Some(position) = position_of(&name) else { continue };
            if let Some((data, _)) = znodes.read(done.child(&name)?).await? {
                records.insert(position, String::from_utf8_lossy(&data).into_owned());
            }
        }
        Ok(records)
    }

    /// The steps that are left to do, with their positions.
    async fn left(&self) -> Result<Vec<(u32, &MigrationStep)>, Error> {
        let records = self.records().await?;
        let (path, steps) = (self.manager.whole_path(&self.path), &self.steps);
        let expected: Vec<String> = steps.iter().map(MigrationStep::record).collect();
        match RecordVerdict::of(&records, &expected) {
            RecordVerdict::Done(done) => {
                Ok((0..count_of(steps.len())).zip(steps).filter(|(position, _)| *position >= done).collect())
            }
            RecordVerdict::Ahead { position, recorded } => {
                Err(MigrationError::Ahead { path, position, recorded }.into())
            }
            RecordVerdict::Changed { position, recorded } => {
                let step = (0..).zip(steps).find(|(at, _)| *at == position);
                let (name, version) =
                    step.map_or_else(Default::default, |(_, step)| (step.name.clone(), step.version));
                Err(MigrationError::Changed { path, position, name, version, recorded }.into())
            }
        }
    }

    fn check_names(&self) -> Result<(), Error> {
        let mut seen = HashSet::new();
        for step in &self.steps {
            let advice = match step.name.trim().is_empty() {
                true => "give each step a name",
                false if !seen.insert(&step.name) => "give each step a name of its own",
                false => continue,
            };
            return Err(
                ConfigError::Setting { name: "step", value: format!("{:?}", step.name), advice }.into()
            );
        }
        Ok(())
    }
}

impl Debug for Migrations {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let steps: Vec<String> = self.steps.iter().map(MigrationStep::record).collect();
        formatter
            .debug_struct("Migrations")
            .field("path", &self.path)
            .field("steps", &steps)
            .finish_non_exhaustive()
    }
}
