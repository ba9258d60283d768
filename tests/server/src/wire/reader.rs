use bytes::{Buf, Bytes};
use thiserror::Error;

use crate::tree::{Acl, Identity, Permissions};

/// The bytes are not what the record should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the record ends early or holds an impossible length")]
pub(super) struct Malformed;

/// Takes fields off the front of a record.
pub(super) struct Reader {
    rest: Bytes,
}

impl Reader {
    pub(super) fn new(record: Bytes) -> Self {
        Self { rest: record }
    }

    pub(super) fn int(&mut self) -> Result<i32, Malformed> {
        self.rest.try_get_i32().map_err(|_| Malformed)
    }

    pub(super) fn long(&mut self) -> Result<i64, Malformed> {
        self.rest.try_get_i64().map_err(|_| Malformed)
    }

    pub(super) fn bool(&mut self) -> Result<bool, Malformed> {
        self.rest.try_get_u8().map(|byte| byte != 0).map_err(|_| Malformed)
    }

    /// A buffer; −1 is its way to say that there is none.
    pub(super) fn buffer(&mut self) -> Result<Option<Bytes>, Malformed> {
        let length = self.int()?;
        if length == -1 {
            return Ok(None);
        }
        let length = usize::try_from(length).map_err(|_| Malformed)?;
        if length > self.rest.len() {
            return Err(Malformed);
        }
        Ok(Some(self.rest.split_to(length)))
    }

    /// A string that has to be there. Bytes that are not UTF-8 are replaced, as Java does.
    pub(super) fn string(&mut self) -> Result<String, Malformed> {
        let bytes = self.buffer()?.ok_or(Malformed)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn vector<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        // Nothing is reserved: every item takes bytes, so a lie about the count ends with the record.
        let mut items = Vec::new();
        for _ in 0..self.int()? {
            items.push(item(self)?);
        }
        Ok(items)
    }

    pub(super) fn strings(&mut self) -> Result<Vec<String>, Malformed> {
        self.vector(Self::string)
    }

    pub(super) fn acl(&mut self) -> Result<Vec<Acl>, Malformed> {
        self.vector(|reader| {
            let permissions = Permissions(reader.int()?);
            let scheme = reader.string()?;
            Ok(Acl::new(permissions, Identity::new(scheme, reader.string()?)))
        })
    }
}
