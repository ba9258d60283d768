use bytes::Bytes;

use super::opcode;
use super::writer::{Writer, length};
use crate::machine::Output;
use crate::protocol::{ErrorCode, ReadResult, Reply, WriteResult};

/// `SyncConnected`: the state every event from a server carries.
const CONNECTED: i32 = 3;

/// Encodes what leaves the server as a frame. `None` for a close, which is no frame.
pub(crate) fn encode(output: &Output) -> Option<Bytes> {
    let mut frame = Writer::new();
    match output {
        Output::Connected { response, .. } => {
            frame.int(0).int(response.timeout).long(response.session).buffer(Some(&response.password));
            if response.with_read_only {
                frame.bool(false);
            }
        }
        Output::Reply { xid, zxid, result, .. } => {
            frame.int(*xid).long(*zxid);
            match result {
                Ok(reply) => body(frame.int(0), reply),
                Err(error) => {
                    frame.int(error.code());
                }
            }
        }
        Output::Event { event, zxid, .. } => {
            frame.int(-1).long(*zxid).int(0);
            frame.int(event.kind.code()).int(CONNECTED).string(&event.path);
        }
        Output::Close { .. } => return None,
    }
    Some(frame.finish())
}

fn body(frame: &mut Writer, reply: &Reply) {
    match reply {
        Reply::Done => frame,
        Reply::Path(path) => frame.string(path),
        Reply::NullPath => frame.buffer(None),
        Reply::PathStat(path, stat) => frame.string(path).stat(stat),
        Reply::Stat(stat) => frame.stat(stat),
        Reply::Data(data, stat) => frame.buffer(data.as_deref()).stat(stat),
        Reply::Children(names) | Reply::Ephemerals(names) => frame.strings(names),
        Reply::ChildrenStat(names, stat) => frame.strings(names).stat(stat),
        Reply::Acl(acl, stat) => frame.acl(acl).stat(stat),
        Reply::Count(count) => frame.int(*count),
        Reply::Identities(identities) => {
            frame.int(length(identities.len()));
            for identity in identities {
                frame.string(&identity.scheme).string(identity.user());
            }
            frame
        }
        Reply::WatchAdded => frame.int(0),
        Reply::Multi(results) => {
            results.iter().for_each(|result| write_result(frame, result));
            multi_end(frame)
        }
        Reply::MultiRead(results) => {
            results.iter().for_each(|result| read_result(frame, result));
            multi_end(frame)
        }
    };
}

fn multi_header(frame: &mut Writer, kind: i32) -> &mut Writer {
    frame.int(kind).bool(false).int(0)
}

fn multi_error(frame: &mut Writer, error: Option<ErrorCode>) -> &mut Writer {
    let code = error.map_or(0, ErrorCode::code);
    frame.int(opcode::ERROR).bool(false).int(code).int(code)
}

fn multi_end(frame: &mut Writer) -> &mut Writer {
    frame.int(-1).bool(true).int(-1)
}

fn write_result(frame: &mut Writer, result: &WriteResult) {
    match result {
        WriteResult::Created { path, stat: None } => multi_header(frame, opcode::CREATE).string(path),
        WriteResult::Created { path, stat: Some(stat) } => {
            multi_header(frame, opcode::CREATE2).string(path).stat(stat)
        }
        WriteResult::Deleted => multi_header(frame, opcode::DELETE),
        WriteResult::DataSet(stat) => multi_header(frame, opcode::SET_DATA).stat(stat),
        WriteResult::Checked => multi_header(frame, opcode::CHECK),
        WriteResult::Failed(error) => multi_error(frame, *error),
    };
}

fn read_result(frame: &mut Writer, result: &ReadResult) {
    match result {
        ReadResult::Data(data, stat) => {
            multi_header(frame, opcode::GET_DATA).buffer(data.as_deref()).stat(stat);
        }
        ReadResult::Children(names) => {
            multi_header(frame, opcode::GET_CHILDREN).strings(names);
        }
        ReadResult::Failed(error) => {
            multi_error(frame, Some(*error));
        }
    }
}
