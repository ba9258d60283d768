use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use tracing::{Span, debug_span, field};
use uuid::Uuid;

use super::rule::Rule;
use crate::error::{ConfigError, Error, HeldHere};
use crate::hold::{self, Changes, NodeMonitor, Read, ReadResult};
use crate::local::QueueEntry;
use crate::local::decide::ContenderKind;
use crate::manager::{ConnectionManager, HoldEvents};
use crate::session::{OwnedNode, ParentLifetime};
use crate::telemetry::timers::WaitTimer;
use crate::znode::name::{CreateId, Label, NodeName};
use crate::znode::path::{IntoPath, ZnodePath};
use crate::znode::whole_path::WholePath;

/// A contender queue in one directory, first in, first out.
///
/// The directory belongs to the queue alone. The first contender creates it as a container node, which the
/// server removes when the queue has been empty for a while (a persistent node where the server has no
/// containers).
///
/// # Ordering and fairness
///
/// The server numbers contenders in the order in which it commits their creates: first in, first out, across
/// all processes. A contender whose session expires or whose node is deleted enters the queue again at the
/// end.
///
/// # Examples
///
/// A recipe for "at most one, and every visit counted", in a few lines:
///
/// ```
/// use lockkeeper_core::{ConnectionManager, Deadline, Error, Label, LockQueue, Rule, ZnodePath};
///
/// /// One visitor at a time.
/// struct Turnstile {
///     queue: LockQueue,
///     visits: ZnodePath,
///     manager: ConnectionManager,
/// }
///
/// impl Turnstile {
///     fn new(manager: &ConnectionManager, path: &str) -> Result<Self, Error> {
///         let path: ZnodePath = path.parse()?;
///         let queue = LockQueue::new(manager, path.child("queue")?, Label::LOCK, Rule::MUTEX)?;
///         Ok(Self { queue, visits: path.child("visits")?, manager: manager.clone() })
///     }
///
///     /// Lets one visitor in, does `work` and counts the visit. The count is exact: the transaction
///     /// commits only while the hold is valid, even if this process was paused in between.
///     async fn visit<T>(&self, work: impl Future<Output = T>) -> Result<T, Box<dyn std::error::Error>> {
///         let held = self.queue.acquire(Deadline::never()).await?;
///         let output = held.run(work).await?;
///         let seen = self.manager.znodes().read(&self.visits).await?;
///         let txn = match seen {
///             None => held.txn().create(self.visits.clone(), b"1".to_vec()),
///             Some((count, stat)) => {
///                 let count: u64 = String::from_utf8(count)?.parse()?;
///                 held.txn().set(self.visits.clone(), (count + 1).to_string().into_bytes(), stat.version)
///             }
///         };
///         txn.commit().await?;
///         held.release().await?;
///         Ok(output)
///     }
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let manager = ConnectionManager::connect(&server.connect_string()).await?;
/// # let turnstile = Turnstile::new(&manager, "/museum")?;
/// # turnstile.visit(async {}).await?;
/// # assert_eq!(turnstile.visit(async { 7 }).await?, 7);
/// # assert_eq!(manager.znodes().read("/museum/visits").await?.unwrap().0, b"2");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct LockQueue {
    // Kept small: every ticket has a copy.
    manager: ConnectionManager,
    /// With the chroot.
    full_directory: ZnodePath,
    data: Arc<[u8]>,
    config: Arc<QueueConfig>,
}

/// How the contenders of a queue are named and ordered.
#[derive(Clone)]
struct QueueConfig {
    /// Below the chroot.
    directory: ZnodePath,
    label: Label,
    rule: Rule,
    metric_name: &'static str,
    /// The full paths of the nodes that a contender reads when it becomes the head.
    reads: Arc<[Read]>,
    /// Own nodes that never block the contender.
    ignoring: Vec<Arc<str>>,
    /// How long the directory exists without contenders.
    lifetime: ParentLifetime,
    /// Is called with each new position of a contender that waits.
    on_position: Option<PositionReport>,
}

/// Is called with a position, or with `None` if it is not known.
type PositionReport = Arc<dyn Fn(Option<u32>) + Send + Sync>;

impl LockQueue {
    /// The queue at `directory`, whose contenders have the label `label` and wait by `rule`.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] when the path is the root, or too long with the chroot prepended, when contenders of
    /// this label would not see each other by this rule, or when a node name could have two labels of the
    /// rule. Nothing is sent.
    pub fn new(
        manager: &ConnectionManager,
        directory: impl IntoPath,
        label: Label,
        rule: Rule,
    ) -> Result<Self, Error> {
        let directory = directory.into_path()?;
        if directory.is_root() {
            return Err(Error::Config(ConfigError::Setting {
                name: "path",
                value: "/".to_owned(),
                advice: "give the lock a path of its own, such as /locks/a",
            }));
        }
        if !rule.admits(label.kind()) {
            return Err(Error::Config(ConfigError::Setting {
                name: "label",
                value: label.as_str().to_owned(),
                advice: "take one of a kind the rule blocks or shares with, or everyone would hold at once",
            }));
        }
        rule.check_labels().map_err(ConfigError::Label)?;
        let full_directory = manager.full_path(&directory)?;
        // The longest name of a contender.
        full_directory.child(&format!("{}-000000000", CreateId::new(Uuid::nil()).name(label)))?;
        let metric_name = label.kind().metric_name();
        let config = QueueConfig {
            directory,
            label,
            rule,
            metric_name,
            reads: Arc::default(),
            ignoring: Vec::new(),
            lifetime: ParentLifetime::WhileUsed,
            on_position: None,
        };
        Ok(Self {
            manager: manager.clone(),
            full_directory,
            data: manager.shared_node_data(),
            config: Arc::new(config),
        })
    }

    /// Sets the nodes, below the manager's chroot, that a contender reads when it becomes the head.
    /// [`Hold::read`](crate::Hold::read) returns the results. If the contender is the head at once, the reads
    /// cost no additional round trip.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] when a path is too long with the chroot prepended. Nothing is sent.
    pub fn with_reads(mut self, reads: &[Read]) -> Result<Self, Error> {
        let full = |read: &Read| Ok(read.at(self.manager.full_path(read.path())?));
        let reads = reads.iter().map(full).collect::<Result<Vec<Read>, Error>>()?;
        Arc::make_mut(&mut self.config).reads = reads.into();
        Ok(self)
    }

    /// Reads the nodes that [`with_reads`](Self::with_reads) names, and sets watches: [`Changes`] reports
    /// when one of them may have changed. As [`Hold::watch`](crate::Hold::watch), in the session of the
    /// monitored node, and also after that node was given up.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] once the node is lost, or its session ends, [`Error::Refused`] and [`Error::Closed`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: nothing is lost.
    pub async fn watch_reads(&self, monitor: &NodeMonitor) -> Result<(Vec<ReadResult>, Changes), Error> {
        monitor.watch(&self.config.reads).await
    }

    /// Makes the directory a persistent node with these data at first, which stays when the queue is empty:
    /// for a recipe that keeps its state in the data of the directory. The recipe deletes it. Default: a
    /// container node without data, which the server deletes.
    ///
    /// A directory that exists already stays as it is. So its data tell whether it may be deleted.
    #[must_use]
    pub fn with_persistent_directory(mut self, data: &'static [u8]) -> Self {
        Arc::make_mut(&mut self.config).lifetime = ParentLifetime::AloneForEver(data);
        self
    }

    /// Sets the data of the contender's node, for people to read. Default: the manager's node data.
    #[must_use]
    pub fn with_node_data(mut self, data: impl Into<Vec<u8>>) -> Self {
        self.data = data.into().into();
        self
    }

    /// The data of the contender's node, as set by [`with_node_data`](Self::with_node_data).
    #[must_use]
    pub fn node_data(&self) -> &[u8] {
        &self.data
    }

    /// Sets the name of this queue's waits and holds in metrics and spans. Default: the meaning of the label,
    /// such as `mutex`. Use few names, as each one creates time series of its own.
    #[must_use]
    pub fn with_metric_name(mut self, name: &'static str) -> Self {
        Arc::make_mut(&mut self.config).metric_name = name;
        self
    }

    /// Calls `report` with the [position](super::Ticket::position) of a contender of this queue each time
    /// before it waits, and with `None` when it has lost its position and enters the queue again. A contender
    /// that is granted at once reports nothing.
    ///
    /// The position is that of the last list. Contenders far ahead may have gone since: a waiter lists again
    /// when one of the two contenders before it has gone. The reports cost no request. `report` runs inside
    /// the wait, so it should only take a note.
    #[must_use]
    pub fn with_position_report(mut self, report: impl Fn(Option<u32>) + Send + Sync + 'static) -> Self {
        Arc::make_mut(&mut self.config).on_position = Some(Arc::new(report));
        self
    }

    pub(crate) fn report_position(&self, position: Option<u32>) {
        if let Some(report) = &self.config.on_position {
            report(position);
        }
    }

    /// The path of the directory, below the manager's chroot.
    #[must_use]
    pub fn directory(&self) -> &ZnodePath {
        &self.config.directory
    }

    /// The path of the directory with the chroot, for errors and logs.
    #[must_use]
    pub fn whole_path(&self) -> WholePath {
        self.full_directory.as_str().into()
    }

    /// The path of the directory on the server.
    pub(crate) fn full_directory(&self) -> &ZnodePath {
        &self.full_directory
    }

    /// The manager of this queue.
    #[must_use]
    pub fn manager(&self) -> &ConnectionManager {
        &self.manager
    }

    /// The events of this process's holds in this queue from now on: granted, given up, lost.
    #[must_use]
    pub fn events(&self) -> HoldEvents {
        self.manager.hold_registry().listen([self.key()])
    }

    /// As [`events`](Self::events), of several queues of the same manager, in the order in which the events
    /// happen.
    #[must_use]
    pub fn events_with(&self, others: &[Self]) -> HoldEvents {
        self.manager.hold_registry().listen(std::iter::once(self).chain(others).map(Self::key))
    }

    /// Whether this process has a valid hold in this queue. Costs no request.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.manager.hold_registry().is_held(&self.key())
    }

    /// A valid hold of this manager in the queue's directory, by any recipe, if there is one among the first
    /// that are registered there. Costs no request.
    ///
    /// It is for messages: a wait behind it may be a wait of a task for itself.
    #[must_use]
    pub fn held_here(&self) -> Option<HeldHere> {
        self.manager.hold_registry().held_here(self.full_directory.as_str())
    }

    /// The node of this name never blocks a contender of this queue.
    pub(crate) fn ignore(&mut self, name: &str) {
        Arc::make_mut(&mut self.config).ignoring.push(name.into());
    }

    fn key(&self) -> String {
        hold::key(self.full_directory.as_str(), self.config.label.kind())
    }

    pub(crate) fn directory_lifetime(&self) -> ParentLifetime {
        self.config.lifetime
    }

    pub(crate) fn reads(&self) -> &Arc<[Read]> {
        &self.config.reads
    }

    pub(crate) fn ignored_names(&self) -> &[Arc<str>] {
        &self.config.ignoring
    }

    /// Starts the timer of a wait. `span` shows the result.
    pub(crate) fn timer(&self, span: Span) -> WaitTimer {
        WaitTimer::begin(self.manager.environment(), self.config.metric_name, span)
    }

    pub(crate) fn metric_name(&self) -> &'static str {
        self.config.metric_name
    }

    pub(crate) fn label(&self) -> Label {
        self.config.label
    }

    pub(crate) fn rule(&self) -> &Rule {
        &self.config.rule
    }

    pub(crate) fn data(&self) -> &Arc<[u8]> {
        &self.data
    }

    /// Whether every contender here waits for every contender ahead.
    pub(crate) fn is_exclusive(&self) -> bool {
        self.config.rule.is_exclusive(self.config.label.kind()) && self.config.ignoring.is_empty()
    }

    /// The kind of its contenders in the local queue, if sequence numbers may determine which contenders are
    /// ahead.
    pub(crate) fn predicted_kind(&self) -> Option<ContenderKind> {
        let kind = self.config.rule.contender_kind(self.config.label.kind());
        // Every write of the state of a directory fires the watch that a local queue sets on the directory.
        let has_state = self.config.lifetime != ParentLifetime::WhileUsed;
        kind.filter(|_| self.config.ignoring.is_empty() && !has_state)
    }

    /// Reads the name of a child of the directory.
    pub(crate) fn parse(&self, name: &str) -> Option<NodeName> {
        self.config.rule.parse(name)
    }

    /// Registers the node in the local queue, if its sequence number may determine which contenders are
    /// ahead.
    pub(crate) fn register(&self, node: &Arc<OwnedNode>) -> Option<Arc<QueueEntry>> {
        let kind = self.predicted_kind()?;
        let name = self.parse(node.name())?;
        let is_ordered = name.kind() == self.config.label.kind() && name.has_ordered_sequence();
        is_ordered.then(|| QueueEntry::register(node, self.full_directory.as_str(), name.sequence(), kind))
    }

    pub(super) fn start_telemetry(&self, is_try: bool) -> CallTelemetry {
        let (path, recipe) = (self.full_directory(), self.metric_name());
        let (outcome, waited) = (field::Empty, field::Empty);
        let span = match is_try {
            true => debug_span!("try_acquire", %path, recipe, outcome, waited),
            false => debug_span!("acquire", %path, recipe, outcome, waited),
        };
        CallTelemetry { timer: self.timer(span.clone()), span }
    }
}

/// The timer and the span of one acquire.
pub(super) struct CallTelemetry {
    pub(super) timer: WaitTimer,
    pub(super) span: Span,
}

impl Debug for LockQueue {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("LockQueue")
            .field("directory", &self.full_directory)
            .field("label", &self.config.label)
            .finish_non_exhaustive()
    }
}
