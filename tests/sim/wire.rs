use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use lockkeeper_core::simulation::{
    Backend, ChangedPaths, Created, Data, Link, MultiError, Reply, Watch, WatchDepth, WatchEvent, Wire,
    WireError, WriteOp, WriteResult,
};
use lockkeeper_core::{CreateMode, CreateOptions, LossReason, Refusal, Stat, Zxid};
use lockkeeper_testserver::protocol::{
    Create, CreateOp, ErrorCode, ReadOp, ReadResult, Reply as ServerReply, Request, WriteOp as ServerOp,
    WriteResult as ServerResult,
};
use lockkeeper_testserver::tree::{self, Acl, Identity, Permissions};

use tokio::sync::oneshot;

use crate::changes;
use crate::environment::Process;
use crate::session::{Answer, Watched};
use crate::world::World;

/// Opens simulated sessions for one process.
pub(crate) struct Network {
    pub(crate) world: World,
    pub(crate) process: Arc<Process>,
}

impl Debug for Network {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "Network({})", self.process.number)
    }
}

impl Backend for Network {
    fn open(&self) -> Reply<Arc<dyn Wire>> {
        let (number, opened) = self.world.open(&self.process);
        // Dropped before it is open, it closes what it began.
        let wire = SimulatedWire { world: self.world.clone(), number };
        Box::pin(async move {
            opened.await.unwrap_or_else(|_| Err(broken()))?;
            let wire: Arc<dyn Wire> = Arc::new(wire);
            Ok(wire)
        })
    }
}

/// One simulated session.
struct SimulatedWire {
    world: World,
    number: usize,
}

impl Drop for SimulatedWire {
    fn drop(&mut self) {
        self.world.close(self.number);
    }
}

impl Debug for SimulatedWire {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "SimulatedWire({})", self.number)
    }
}

impl SimulatedWire {
    fn send<T: Send + 'static>(
        &self,
        request: Request,
        read: impl FnOnce(Answer) -> Result<T, WireError> + Send + 'static,
    ) -> Reply<T> {
        let answer = self.world.send(self.number, request, None);
        Box::pin(async move { read(answer.await.unwrap_or_else(|_| Err(broken()))?) })
    }
}

impl SimulatedWire {
    fn watch<T: Send + 'static>(
        &self,
        request: Request,
        watched: Watched,
        read: impl FnOnce(Answer, Watch) -> Result<T, WireError> + Send + 'static,
    ) -> Reply<T> {
        let answer = self.world.send(self.number, request, Some(watched.clone()));
        let (world, number) = (self.world.clone(), self.number);
        let mut watching = Watching { world, number, watched, answer, event: None };
        Box::pin(async move {
            let mut answer = (&mut watching.answer).await.unwrap_or_else(|_| Err(broken()))?;
            watching.event = answer.watch.take();
            let watch: Watch = Box::pin(async move {
                match &mut watching.event {
                    Some(event) => event.await.unwrap_or(WatchEvent::SessionEnded),
                    None => std::future::pending().await,
                }
            });
            read(answer, watch)
        })
    }
}

/// A watch that a task waits for, or for the answer to its request. The client removes the watch at the
/// server when no task waits any more, also if nobody has read the answer.
struct Watching {
    world: World,
    number: usize,
    watched: Watched,
    answer: oneshot::Receiver<Result<Answer, WireError>>,
    event: Option<oneshot::Receiver<WatchEvent>>,
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.answer.close();
        let event = self.event.take().or_else(|| self.answer.try_recv().ok()?.ok()?.watch);
        if event.is_some_and(|event| !event.is_terminated()) {
            self.world.unwatch(self.number, &self.watched);
        }
    }
}

pub(crate) fn broken() -> WireError {
    WireError::Broken("the simulation is over".to_owned())
}

impl Wire for SimulatedWire {
    fn session_id(&self) -> i64 {
        self.world.session(self.number, |session| session.id)
    }

    fn session_timeout(&self) -> Duration {
        self.world.timeout()
    }

    fn link(&self) -> Link {
        self.world.session(self.number, |session| session.link)
    }

    fn connection_id(&self) -> u64 {
        self.world.session(self.number, |session| session.connection_id)
    }

    fn link_changed(&self) -> BoxFuture<'static, ()> {
        let changed = self.world.session(self.number, |session| Arc::clone(&session.changed));
        Box::pin(changed.notified_owned())
    }

    fn ended(&self) -> BoxFuture<'static, LossReason> {
        let ended = self.world.session(self.number, |session| session.ended.clone());
        let (world, number) = (self.world.clone(), self.number);
        Box::pin(async move {
            ended.cancelled_owned().await;
            match world.session(number, |session| session.was_closed) {
                true => LossReason::Closed,
                false => LossReason::SessionExpired,
            }
        })
    }

    fn create(&self, path: &str, data: &[u8], options: &CreateOptions) -> Reply<Created> {
        self.send(Request::Write(create(path, data, options.mode())), |answer| {
            match answer.result.map_err(refused)? {
                ServerReply::PathStat(path, stat) => Ok(Created { path, stat: Some(our_stat(&stat)) }),
                other => panic!("{other:?}"),
            }
        })
    }

    fn delete(&self, path: &str, version: Option<i32>) -> Reply<()> {
        let version = version.unwrap_or(-1);
        self.send(Request::Write(ServerOp::Delete { path: path.to_owned(), version }), done)
    }

    fn exists(&self, path: &str) -> Reply<Option<Stat>> {
        self.send(Request::Exists { path: path.to_owned(), watch: false }, |answer| match answer.result {
            Ok(ServerReply::Stat(stat)) => Ok(Some(our_stat(&stat))),
            Err(ErrorCode::NoNode) => Ok(None),
            Err(error) => Err(refused(error)),
            Ok(other) => panic!("{other:?}"),
        })
    }

    fn data(&self, path: &str) -> Reply<(Vec<u8>, Stat)> {
        self.send(Request::GetData { path: path.to_owned(), watch: false }, data)
    }

    fn watch_data(&self, path: &str) -> Reply<(Vec<u8>, Stat, Watch)> {
        let request = Request::GetData { path: path.to_owned(), watch: true };
        self.watch(request, Watched::Data(path.to_owned()), |answer, watch| {
            let (data, stat) = data(answer)?;
            Ok((data, stat, watch))
        })
    }

    fn set_data(&self, path: &str, data: &[u8], version: Option<i32>) -> Reply<Stat> {
        let request = Request::Write(set_data(path, data, version));
        self.send(request, |answer| match answer.result.map_err(refused)? {
            ServerReply::Stat(stat) => Ok(our_stat(&stat)),
            other => panic!("{other:?}"),
        })
    }

    fn acl(&self, _: &str) -> Reply<(lockkeeper_core::Acl, i32)> {
        Box::pin(std::future::ready(Err(WireError::Refused(Refusal::Unimplemented))))
    }

    fn set_acl(&self, _: &str, _: &lockkeeper_core::Acl, _: Option<i32>) -> Reply<i32> {
        Box::pin(std::future::ready(Err(WireError::Refused(Refusal::Unimplemented))))
    }

    fn children(&self, path: &str) -> Reply<Vec<String>> {
        let request = Request::GetChildren { path: path.to_owned(), watch: false, with_stat: false };
        self.send(request, |answer| match answer.result.map_err(refused)? {
            ServerReply::Children(names) => Ok(names),
            other => panic!("{other:?}"),
        })
    }

    fn children_stat(&self, path: &str) -> Reply<(Vec<String>, Stat)> {
        let request = Request::GetChildren { path: path.to_owned(), watch: false, with_stat: true };
        self.send(request, children_stat)
    }

    fn watch_children(&self, path: &str) -> Reply<(Vec<String>, Stat, Watch)> {
        let request = Request::GetChildren { path: path.to_owned(), watch: true, with_stat: true };
        self.watch(request, Watched::Children(path.to_owned()), |answer, watch| {
            let (names, stat) = children_stat(answer)?;
            Ok((names, stat, watch))
        })
    }

    fn children_of_all(&self, paths: &[String]) -> Reply<Vec<Option<Vec<String>>>> {
        let reads = paths.iter().cloned().map(ReadOp::Children).collect();
        self.send(Request::MultiRead(reads), |answer| match answer.result.map_err(refused)? {
            ServerReply::MultiRead(results) => results
                .into_iter()
                .map(|result| match result {
                    ReadResult::Children(names) => Ok(Some(names)),
                    ReadResult::Failed(ErrorCode::NoNode) => Ok(None),
                    other => panic!("{other:?}"),
                })
                .collect(),
            other => panic!("{other:?}"),
        })
    }

    fn data_of_all(&self, paths: &[String]) -> Reply<Vec<Result<Data, Refusal>>> {
        let reads = paths.iter().cloned().map(ReadOp::Data).collect();
        self.send(Request::MultiRead(reads), |answer| match answer.result.map_err(refused)? {
            ServerReply::MultiRead(results) => results
                .into_iter()
                .map(|result| match result {
                    ReadResult::Data(data, stat) => {
                        Ok(Ok((data.unwrap_or_default().to_vec(), our_stat(&stat))))
                    }
                    ReadResult::Failed(ErrorCode::NoNode) => Ok(Err(Refusal::NoNode)),
                    other => panic!("{other:?}"),
                })
                .collect(),
            other => panic!("{other:?}"),
        })
    }

    fn watch_all_changes(&self, path: &str, depth: WatchDepth) -> Reply<ChangedPaths> {
        changes::watch(&self.world, self.number, path, depth)
    }

    fn sync(&self, path: &str) -> Reply<()> {
        self.send(Request::Sync { path: path.to_owned() }, done)
    }

    fn multi(&self, operations: &[WriteOp]) -> BoxFuture<'static, Result<Vec<WriteResult>, MultiError>> {
        let operations = operations.iter().map(|operation| match operation {
            WriteOp::Check { path, version } => {
                ServerOp::Check { path: path.clone(), version: version.unwrap_or(-1) }
            }
            WriteOp::Create { path, data, mode } => create(path, data, *mode),
            WriteOp::SetData { path, data, version } => set_data(path, data, *version),
            WriteOp::Delete { path, version } => {
                ServerOp::Delete { path: path.clone(), version: version.unwrap_or(-1) }
            }
        });
        let results = self.send(Request::Multi(operations.collect()), |answer| {
            match answer.result.map_err(refused)? {
                ServerReply::Multi(results) => Ok(results),
                other => panic!("{other:?}"),
            }
        });
        Box::pin(async move {
            let results = results.await.map_err(MultiError::Request)?;
            for (index, result) in results.iter().enumerate() {
                match result {
                    ServerResult::Failed(None | Some(ErrorCode::RuntimeInconsistency)) => {}
                    ServerResult::Failed(Some(error)) => {
                        let WireError::Refused(refusal) = refused(*error) else {
                            return Err(MultiError::Request(refused(*error)));
                        };
                        return Err(MultiError::Operation { index, refusal });
                    }
                    _ => {}
                }
            }
            Ok(results.into_iter().map(write_result).collect())
        })
    }

    fn own_ephemerals(&self, prefix: &str) -> Reply<Vec<String>> {
        self.send(Request::Ephemerals { prefix: prefix.to_owned() }, |answer| {
            match answer.result.map_err(refused)? {
                ServerReply::Ephemerals(paths) => Ok(paths),
                other => panic!("{other:?}"),
            }
        })
    }
}

fn done(answer: Answer) -> Result<(), WireError> {
    answer.result.map(|_| ()).map_err(refused)
}

fn children_stat(answer: Answer) -> Result<(Vec<String>, Stat), WireError> {
    match answer.result.map_err(refused)? {
        ServerReply::ChildrenStat(names, stat) => Ok((names, our_stat(&stat))),
        other => panic!("{other:?}"),
    }
}

fn data(answer: Answer) -> Result<(Vec<u8>, Stat), WireError> {
    match answer.result.map_err(refused)? {
        ServerReply::Data(data, stat) => Ok((data.unwrap_or_default().to_vec(), our_stat(&stat))),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn create(path: &str, data: &[u8], mode: CreateMode) -> ServerOp {
    let (op, flags) = match mode {
        CreateMode::Persistent => (CreateOp::Create2, 0),
        CreateMode::Ephemeral => (CreateOp::Create2, 1),
        CreateMode::PersistentSequential => (CreateOp::Create2, 2),
        CreateMode::EphemeralSequential => (CreateOp::Create2, 3),
        CreateMode::Container => (CreateOp::Container, 4),
        other => panic!("{other:?}"),
    };
    let acl = vec![Acl::new(Permissions::ALL, Identity::anyone())];
    let data = Some(data.to_vec().into());
    ServerOp::Create(Create { op, path: path.to_owned(), data, acl, flags, ttl: -1 })
}

pub(crate) fn set_data(path: &str, data: &[u8], version: Option<i32>) -> ServerOp {
    let data = Some(data.to_vec().into());
    ServerOp::SetData { path: path.to_owned(), data, version: version.unwrap_or(-1) }
}

fn write_result(result: ServerResult) -> WriteResult {
    match result {
        ServerResult::Created { path, stat } => {
            WriteResult::Created(Created { path, stat: stat.map(|stat| our_stat(&stat)) })
        }
        ServerResult::DataSet(stat) => WriteResult::Written(our_stat(&stat)),
        _ => WriteResult::Done,
    }
}

fn our_stat(stat: &tree::Stat) -> Stat {
    Stat {
        czxid: Zxid::new(stat.czxid),
        mzxid: Zxid::new(stat.mzxid),
        pzxid: Zxid::new(stat.pzxid),
        ctime: stat.ctime,
        mtime: stat.mtime,
        version: stat.version,
        child_version: stat.cversion,
        ephemeral_owner: stat.ephemeral_owner,
        data_length: stat.data_length,
        children: stat.num_children,
    }
}

pub(crate) fn refused(error: ErrorCode) -> WireError {
    WireError::Refused(match error {
        ErrorCode::NoNode => Refusal::NoNode,
        ErrorCode::NodeExists => Refusal::NodeExists,
        ErrorCode::BadVersion => Refusal::BadVersion,
        ErrorCode::NoAuth => Refusal::NoAuth,
        ErrorCode::NotEmpty => Refusal::NotEmpty,
        ErrorCode::NoChildrenForEphemerals => Refusal::EphemeralParent,
        ErrorCode::Unimplemented => Refusal::Unimplemented,
        ErrorCode::SessionExpired => return WireError::SessionEnded(LossReason::SessionExpired),
        other => panic!("{other:?}"),
    })
}
