use bytes::Bytes;

use super::opcode;
use super::reader::{Malformed, Reader};
use crate::protocol::{ConnectRequest, Create, CreateMode, CreateOp, Op, ReadOp, Request, WriteOp};
use crate::tree::{WatchKind, WatchMode};

/// Decodes the first frame of a connection. `None` if it is no connect request.
pub(crate) fn decode_connect(frame: Bytes) -> Option<ConnectRequest> {
    let mut reader = Reader::new(frame);
    let mut request = || {
        let _protocol_version = reader.int()?;
        let last_zxid = reader.long()?;
        let timeout = reader.int()?;
        let session = reader.long()?;
        let password = reader.buffer()?.unwrap_or_default().to_vec();
        Ok::<_, Malformed>(ConnectRequest { last_zxid, timeout, session, password, read_only: None })
    };
    let request = request().ok()?;
    Some(ConnectRequest { read_only: reader.bool().ok(), ..request })
}

/// Decodes a later frame into the number the client gave it and what it asks. `None` if not even that much is
/// there.
pub(crate) fn decode_request(frame: Bytes) -> Option<(i32, Request)> {
    let mut reader = Reader::new(frame);
    let xid = reader.int().ok()?;
    let opcode = reader.int().ok()?;
    let op = opcode::op(opcode);
    let request = match op {
        Op::Unknown => Request::Unknown { opcode },
        _ => body(op, reader).unwrap_or(Request::Malformed { op }),
    };
    Some((xid, request))
}

fn body(op: Op, mut reader: Reader) -> Result<Request, Malformed> {
    let reader = &mut reader;
    if reader.is_null()
        && let Some(request) = null_path(op, reader)?
    {
        return Ok(request);
    }
    Ok(match op {
        Op::Create => Request::Write(WriteOp::Create(create(CreateOp::Create, reader)?)),
        Op::Create2 => Request::Write(WriteOp::Create(create(CreateOp::Create2, reader)?)),
        Op::CreateContainer => Request::Write(WriteOp::Create(create(CreateOp::Container, reader)?)),
        Op::CreateTtl => Request::Write(WriteOp::Create(create(CreateOp::Ttl, reader)?)),
        Op::Delete => Request::Write(WriteOp::Delete { path: reader.string()?, version: reader.int()? }),
        Op::SetData => Request::Write(set_data(reader)?),
        Op::Check => Request::Write(WriteOp::Check { path: reader.string()?, version: reader.int()? }),
        Op::Multi => Request::Multi(transaction(reader)?),
        Op::MultiRead => Request::MultiRead(multi_read(reader)?),
        Op::Exists => Request::Exists { path: reader.string()?, watch: reader.bool()? },
        Op::GetData => Request::GetData { path: reader.string()?, watch: reader.bool()? },
        Op::GetChildren | Op::GetChildren2 => {
            let (path, watch) = (reader.string()?, reader.bool()?);
            Request::GetChildren { path, watch, with_stat: op == Op::GetChildren2 }
        }
        Op::GetAllChildrenNumber => Request::CountDescendants { path: reader.string()? },
        // A null prefix means everything.
        Op::GetEphemerals => Request::Ephemerals { prefix: reader.nullable_string()?.unwrap_or_default() },
        Op::GetAcl => Request::GetAcl { path: reader.string()? },
        Op::SetAcl => Request::SetAcl { path: reader.string()?, acl: reader.acl()?, version: reader.int()? },
        Op::Sync => Request::Sync { path: reader.string()? },
        Op::Ping => Request::Ping,
        Op::Auth => {
            let _type = reader.int()?;
            let scheme = reader.nullable_string()?.unwrap_or_default();
            Request::Auth { scheme, credentials: reader.buffer()? }
        }
        Op::SetWatches | Op::SetWatches2 => {
            let seen = reader.long()?;
            let (data, absent, children) = (reader.strings()?, reader.strings()?, reader.strings()?);
            let persistent =
                if op == Op::SetWatches2 { Some((reader.strings()?, reader.strings()?)) } else { None };
            Request::SetWatches { seen, data, absent, children, persistent }
        }
        Op::AddWatch => Request::AddWatch { path: reader.string()?, mode: watch_mode(reader)? },
        Op::RemoveWatches => Request::RemoveWatches { path: reader.string()?, kind: watch_kind(reader)? },
        Op::CheckWatches => Request::CheckWatches { path: reader.string()?, kind: watch_kind(reader)? },
        Op::WhoAmI => Request::WhoAmI,
        Op::CloseSession => Request::CloseSession,
        Op::Reconfig => Request::Reconfig,
        Op::Connect | Op::Unknown => return Err(Malformed),
    })
}

/// The operations that take a null path further than the decoder. `None` for all others.
fn null_path(op: Op, reader: &mut Reader) -> Result<Option<Request>, Malformed> {
    if !matches!(op, Op::SetData | Op::SetAcl | Op::Check | Op::Sync | Op::AddWatch | Op::RemoveWatches) {
        return Ok(None);
    }
    reader.buffer()?;
    match op {
        Op::SetData => {
            reader.buffer()?;
            reader.int()?;
        }
        Op::SetAcl => {
            reader.acl()?;
            reader.int()?;
        }
        Op::Check => {
            reader.int()?;
        }
        Op::AddWatch => {
            watch_mode(reader)?;
        }
        Op::RemoveWatches => {
            watch_kind(reader)?;
        }
        _ => {}
    }
    Ok(Some(Request::NullPath { op }))
}

fn create(op: CreateOp, reader: &mut Reader) -> Result<Create, Malformed> {
    let path = reader.string()?;
    let data = reader.buffer()?;
    let acl = reader.acl()?;
    let flags = reader.int()?;
    let ttl = if op == CreateOp::Ttl { reader.long()? } else { -1 };
    Ok(Create { op, path, data, acl, flags, ttl })
}

fn set_data(reader: &mut Reader) -> Result<WriteOp, Malformed> {
    Ok(WriteOp::SetData { path: reader.string()?, data: reader.buffer()?, version: reader.int()? })
}

fn watch_mode(reader: &mut Reader) -> Result<WatchMode, Malformed> {
    match reader.int()? {
        0 => Ok(WatchMode::Persistent),
        1 => Ok(WatchMode::PersistentRecursive),
        _ => Err(Malformed),
    }
}

fn watch_kind(reader: &mut Reader) -> Result<WatchKind, Malformed> {
    match reader.int()? {
        1 => Ok(WatchKind::Children),
        2 => Ok(WatchKind::Data),
        3 => Ok(WatchKind::Any),
        _ => Err(Malformed),
    }
}

/// The header before each operation of a transaction. `None` after the last.
fn multi_header(reader: &mut Reader) -> Result<Option<i32>, Malformed> {
    let kind = reader.int()?;
    let done = reader.bool()?;
    let _error = reader.int()?;
    Ok((!done).then_some(kind))
}

fn transaction(reader: &mut Reader) -> Result<Vec<WriteOp>, Malformed> {
    let mut ops = Vec::new();
    while let Some(kind) = multi_header(reader)? {
        ops.push(match kind {
            opcode::CREATE | opcode::CREATE2 | opcode::CREATE_CONTAINER => {
                let mut create = create(CreateOp::Create, reader)?;
                // Inside a transaction the flags decide what is made, whatever the header says; the header
                // only decides (in releases that mind it) whether metadata is answered.
                create.op = match CreateMode::from_flags(create.flags) {
                    Ok(CreateMode::Container) => CreateOp::Container,
                    _ if kind == opcode::CREATE2 => CreateOp::Create2,
                    _ => CreateOp::Create,
                };
                WriteOp::Create(create)
            }
            opcode::CREATE_TTL => {
                let mut create = create(CreateOp::Ttl, reader)?;
                if !CreateMode::from_flags(create.flags).is_ok_and(CreateMode::is_ttl) {
                    create.op = CreateOp::Create;
                    create.ttl = -1;
                }
                WriteOp::Create(create)
            }
            opcode::DELETE => WriteOp::Delete { path: reader.string()?, version: reader.int()? },
            opcode::SET_DATA => set_data(reader)?,
            opcode::CHECK => WriteOp::Check { path: reader.string()?, version: reader.int()? },
            _ => return Err(Malformed),
        });
    }
    Ok(ops)
}

fn multi_read(reader: &mut Reader) -> Result<Vec<ReadOp>, Malformed> {
    let mut ops = Vec::new();
    while let Some(kind) = multi_header(reader)? {
        let path = reader.string()?;
        let _watch = reader.bool()?;
        ops.push(match kind {
            opcode::GET_DATA => ReadOp::Data(path),
            opcode::GET_CHILDREN => ReadOp::Children(path),
            _ => return Err(Malformed),
        });
    }
    Ok(ops)
}
