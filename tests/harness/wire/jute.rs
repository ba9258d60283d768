//! ZooKeeper's serialization: numbers in network order; strings and buffers with their length in front, −1
//! for none.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::error::HarnessError;

/// Reads a message from its front.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    pub(crate) fn int(&mut self) -> Result<i32, HarnessError> {
        self.rest.try_get_i32().map_err(|_| too_short())
    }

    pub(crate) fn long(&mut self) -> Result<i64, HarnessError> {
        self.rest.try_get_i64().map_err(|_| too_short())
    }

    pub(crate) fn bool(&mut self) -> Result<bool, HarnessError> {
        self.rest.try_get_u8().map(|byte| byte != 0).map_err(|_| too_short())
    }

    pub(crate) fn buffer(&mut self) -> Result<&'a [u8], HarnessError> {
        let length = usize::try_from(self.int()?).unwrap_or(0);
        let (buffer, rest) = self.rest.split_at_checked(length).ok_or_else(too_short)?;
        self.rest = rest;
        Ok(buffer)
    }

    pub(crate) fn string(&mut self) -> Result<String, HarnessError> {
        String::from_utf8(self.buffer()?.to_vec())
            .map_err(|_| HarnessError::malformed("a string that is not UTF-8"))
    }
}

/// Builds a message.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    message: BytesMut,
}

impl Writer {
    pub(crate) fn int(mut self, value: i32) -> Self {
        self.message.put_i32(value);
        self
    }

    pub(crate) fn long(mut self, value: i64) -> Self {
        self.message.put_i64(value);
        self
    }

    pub(crate) fn bool(mut self, value: bool) -> Self {
        self.message.put_u8(value.into());
        self
    }

    pub(crate) fn buffer(mut self, value: &[u8]) -> Self {
        // No message of a test is close to 2 GiB.
        self.message.put_i32(i32::try_from(value.len()).unwrap_or(i32::MAX));
        self.message.put_slice(value);
        self
    }

    pub(crate) fn string(self, value: &str) -> Self {
        self.buffer(value.as_bytes())
    }

    pub(crate) fn finish(self) -> Bytes {
        self.message.freeze()
    }
}

fn too_short() -> HarnessError {
    HarnessError::malformed("a message that ends too soon")
}
