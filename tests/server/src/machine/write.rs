use super::prepare::Prepare;
use super::replica::Txn;
use super::{ClientId, Machine, Output};
use crate::protocol::{CreateOp, ErrorCode, Reply, Request, WriteOp, WriteResult};
use crate::tree::{Change, Identity, Stat, parent};

/// The source of a write, independent of any connection.
///
/// A request that was read from a connection can be applied after the end of the connection: see
/// [`Machine::late_write`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The server that received it.
    pub server: usize,
    /// The session it belongs to.
    pub session: i64,
    /// The identities of the requester.
    pub identities: Vec<Identity>,
}

impl Machine {
    /// The source of the requests of a connection. `None` before it has a session.
    pub fn origin(&self, client: ClientId) -> Option<Origin> {
        let client = self.clients.get(&client)?;
        Some(Origin {
            server: client.server,
            session: client.session?,
            identities: client.identities.clone(),
        })
    }

    /// Applies a write whose connection has ended, as happens when a server has read a request but not yet
    /// handed it on. No client gets its reply. Refused when the session has ended or has moved to another
    /// server, or when its server does not serve.
    pub fn late_write(&mut self, origin: &Origin, request: Request, now: i64) -> Vec<Output> {
        let mut out = Vec::new();
        self.late_writes += 1;
        let is_served = self.is_serving(origin.server);
        if is_served && request.is_write() && request != Request::CloseSession {
            self.write(origin, request, now, &mut out);
        }
        out
    }

    /// How many writes were processed after the end of their connection, also those that were refused.
    pub fn late_writes(&self) -> u64 {
        self.late_writes
    }

    /// Makes sequence numbers run on past the end of their range from transaction to transaction, or no
    /// longer.
    ///
    /// The real server does this while creates are in flight: each takes its number from the one before, and
    /// only when all are done does it go back to the counter of the node, which stops at its maximum.
    pub fn count_ahead(&mut self, ahead: bool) {
        self.counts_ahead = ahead;
        self.ahead.clear();
    }

    /// Deletes a node without asking for permission or version, as an administrator might. Nothing if it is
    /// not there or has children.
    pub fn delete_node(&mut self, path: &str, now: i64) -> Vec<Output> {
        let mut out = Vec::new();
        if path != "/" && self.tree.node(path).is_some_and(|node| node.children.is_empty()) {
            self.zxid += 1;
            let changes = vec![Change::Delete { path: path.to_owned() }];
            self.commit(Txn { zxid: self.zxid, time: now, changes, ended: None }, &mut out);
        }
        out
    }

    /// Does a write. `None` when the session may not write through that server.
    pub(super) fn write(
        &mut self,
        origin: &Origin,
        request: Request,
        now: i64,
        out: &mut Vec<Output>,
    ) -> Option<Result<Reply, ErrorCode>> {
        if !self.may_write(origin.session, origin.server) {
            return None;
        }
        // A failed write takes a number too: it is a transaction that says that it failed.
        self.zxid += 1;
        let (changes, answer) = match self.decide(origin, &request) {
            Ok(Decided { changes, answer }) => (changes, Ok(answer)),
            Err(error) => (Vec::new(), Err(error)),
        };
        if self.counts_ahead {
            self.ahead.extend(changes.iter().filter_map(counted));
        }
        let stats = self.commit(Txn { zxid: self.zxid, time: now, changes, ended: None }, out);
        Some(answer.map(|answer| answer.into_reply(stats, self.settings.stat_in_multi)))
    }

    fn decide(&self, origin: &Origin, request: &Request) -> Result<Decided, ErrorCode> {
        let mut prepare = Prepare::new(&self.tree, origin, self.settings.ttl_nodes, &self.ahead);
        match request {
            Request::Write(op) => {
                let change = prepare.op(op)?;
                let answer = match (op, &change) {
                    (WriteOp::Create(create), Some(Change::Create { path, .. })) => {
                        Answer::Created(create.op, path.clone())
                    }
                    (WriteOp::Check { path, .. }, _) => {
                        Answer::Stat(self.tree.node(path).map(|node| node.stat()))
                    }
                    (WriteOp::SetData { .. }, _) => Answer::Stat(None),
                    _ => Answer::Done,
                };
                Ok(Decided { changes: change.into_iter().collect(), answer })
            }
            Request::SetAcl { path, acl, version } => Ok(Decided {
                changes: vec![prepare.set_acl(path, acl, *version)?],
                answer: Answer::Stat(None),
            }),
            Request::Multi(ops) => transaction(prepare, ops),
            Request::NullPath { .. } => Err(ErrorCode::BadArguments),
            Request::Reconfig => Err(ErrorCode::ReconfigDisabled),
            _ => Err(ErrorCode::MarshallingError),
        }
    }
}

/// The parent of a node that is made, and its counter afterwards.
fn counted(change: &Change) -> Option<(String, i32)> {
    let Change::Create { path, parent_created, .. } = change else { return None };
    Some((parent(path)?.to_owned(), *parent_created))
}

/// # Errors
///
/// [`ErrorCode::MarshallingError`]: that is no error of one operation, but of the whole request.
fn transaction(mut prepare: Prepare<'_>, ops: &[WriteOp]) -> Result<Decided, ErrorCode> {
    let mut changes = Vec::new();
    let mut results = Vec::new();
    for (index, op) in ops.iter().enumerate() {
        match prepare.op(op) {
            Ok(change) => {
                results.push(match (op, &change) {
                    (WriteOp::Create(create), Some(Change::Create { path, .. })) => {
                        MultiAnswer::Created(create.op, path.clone())
                    }
                    (WriteOp::Delete { .. }, _) => MultiAnswer::Deleted,
                    (WriteOp::SetData { .. }, _) => MultiAnswer::DataSet,
                    _ => MultiAnswer::Checked,
                });
                changes.extend(change);
            }
            Err(ErrorCode::MarshallingError) => return Err(ErrorCode::MarshallingError),
            Err(error) => {
                let results = (0..ops.len()).map(|other| {
                    WriteResult::Failed(match other.cmp(&index) {
                        std::cmp::Ordering::Less => None,
                        std::cmp::Ordering::Equal => Some(error),
                        std::cmp::Ordering::Greater => Some(ErrorCode::RuntimeInconsistency),
                    })
                });
                let answer = Answer::FailedMulti(results.collect());
                return Ok(Decided { changes: Vec::new(), answer });
            }
        }
    }
    Ok(Decided { changes, answer: Answer::Multi(results) })
}

/// A write that will be done: what changes, and what to say once the metadata is known.
struct Decided {
    changes: Vec<Change>,
    answer: Answer,
}

enum Answer {
    Done,
    /// Metadata: given, or that of the change.
    Stat(Option<Stat>),
    Created(CreateOp, String),
    Multi(Vec<MultiAnswer>),
    FailedMulti(Vec<WriteResult>),
}

enum MultiAnswer {
    Created(CreateOp, String),
    Deleted,
    DataSet,
    Checked,
}

impl Answer {
    fn into_reply(self, stats: Vec<Option<Stat>>, stat_in_multi: bool) -> Reply {
        let mut stats = stats.into_iter();
        let mut next = move || stats.next().flatten().unwrap_or_default();
        match self {
            Self::Done => Reply::Done,
            Self::Stat(given) => Reply::Stat(given.unwrap_or_else(next)),
            Self::Created(CreateOp::Create, path) => Reply::Path(path),
            Self::Created(_, path) => Reply::PathStat(path, next()),
            Self::FailedMulti(results) => Reply::Multi(results),
            Self::Multi(answers) => {
                let result = |answer| match answer {
                    MultiAnswer::Created(op, path) => {
                        let stat = Some(next()).filter(|_| match op {
                            CreateOp::Create => false,
                            CreateOp::Create2 => stat_in_multi,
                            CreateOp::Container | CreateOp::Ttl => true,
                        });
                        WriteResult::Created { path, stat }
                    }
                    MultiAnswer::Deleted => {
                        next();
                        WriteResult::Deleted
                    }
                    MultiAnswer::DataSet => WriteResult::DataSet(next()),
                    MultiAnswer::Checked => WriteResult::Checked,
                };
                Reply::Multi(answers.into_iter().map(result).collect())
            }
        }
    }
}
