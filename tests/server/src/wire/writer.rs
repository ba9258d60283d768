use bytes::{BufMut, Bytes, BytesMut};

use crate::tree::{Acl, Stat};

/// Builds one frame.
pub(super) struct Writer {
    body: BytesMut,
}

impl Writer {
    pub(super) fn new() -> Self {
        Self { body: BytesMut::with_capacity(128) }
    }

    /// The frame with its length in front.
    pub(super) fn finish(self) -> Bytes {
        let mut frame = BytesMut::with_capacity(self.body.len() + 4);
        frame.put_i32(length(self.body.len()));
        frame.put(self.body);
        frame.freeze()
    }

    pub(super) fn int(&mut self, value: i32) -> &mut Self {
        self.body.put_i32(value);
        self
    }

    pub(super) fn long(&mut self, value: i64) -> &mut Self {
        self.body.put_i64(value);
        self
    }

    pub(super) fn bool(&mut self, value: bool) -> &mut Self {
        self.body.put_u8(u8::from(value));
        self
    }

    pub(super) fn buffer(&mut self, bytes: Option<&[u8]>) -> &mut Self {
        match bytes {
            None => self.int(-1),
            Some(bytes) => {
                self.int(length(bytes.len()));
                self.body.put_slice(bytes);
                self
            }
        }
    }

    pub(super) fn string(&mut self, text: &str) -> &mut Self {
        self.buffer(Some(text.as_bytes()))
    }

    pub(super) fn strings(&mut self, items: &[String]) -> &mut Self {
        self.int(length(items.len()));
        for item in items {
            self.string(item);
        }
        self
    }

    pub(super) fn stat(&mut self, stat: &Stat) -> &mut Self {
        self.long(stat.czxid).long(stat.mzxid).long(stat.ctime).long(stat.mtime);
        self.int(stat.version).int(stat.cversion).int(stat.aversion).long(stat.ephemeral_owner);
        self.int(stat.data_length).int(stat.num_children).long(stat.pzxid)
    }

    pub(super) fn acl(&mut self, list: &[Acl]) -> &mut Self {
        self.int(length(list.len()));
        for acl in list {
            self.int(acl.permissions.0)
                .string(&acl.identity.scheme)
                .buffer(acl.identity.id.as_ref().map(String::as_bytes));
        }
        self
    }
}

pub(super) fn length(length: usize) -> i32 {
    i32::try_from(length).unwrap_or(i32::MAX)
}
