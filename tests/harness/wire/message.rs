//! As much of a message as a bystander wants to know.

use super::{OpCode, Reader, multi};
use crate::error::HarnessError;

const XID_EVENT: i32 = -1;

/// A request behind the handshake.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) xid: i32,
    pub(crate) op: OpCode,
    pub(crate) path: Option<String>,
    /// Of a multi only.
    pub(crate) parts: Vec<(OpCode, String)>,
}

impl Request {
    pub(crate) fn decode(message: &[u8]) -> Result<Self, HarnessError> {
        let mut reader = Reader::new(message);
        let (xid, op) = (reader.int()?, OpCode::from_wire(reader.int()?));
        let path = op.has_path().then(|| reader.string()).transpose()?;
        let parts = match op {
            OpCode::Multi | OpCode::MultiRead => multi::parts(&mut reader),
            _ => Vec::new(),
        };
        Ok(Self { xid, op, path, parts })
    }

    /// A watch event in the shape of a request.
    pub(crate) fn event(path: &str) -> Self {
        Self { xid: XID_EVENT, op: OpCode::Event, path: Some(path.to_owned()), parts: Vec::new() }
    }

    /// The handshake in the shape of a request.
    pub(crate) fn handshake() -> Self {
        Self { xid: 0, op: OpCode::Connect, path: None, parts: Vec::new() }
    }
}

/// A reply behind the handshake, or a watch event.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) xid: i32,
    pub(crate) zxid: i64,
    pub(crate) error: i32,
    /// The path of a watch event.
    pub(crate) event: Option<String>,
}

impl Reply {
    pub(crate) fn decode(message: &[u8]) -> Result<Self, HarnessError> {
        let mut reader = Reader::new(message);
        let (xid, zxid, error) = (reader.int()?, reader.long()?, reader.int()?);
        let event = if xid == XID_EVENT {
            let (_kind, _state) = (reader.int()?, reader.int()?);
            Some(reader.string()?)
        } else {
            None
        };
        Ok(Self { xid, zxid, error, event })
    }
}
