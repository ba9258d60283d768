use bytes::{Buf, Bytes};
use thiserror::Error;

use crate::tree::{Acl, Identity, Permissions};

/// The length of a string, buffer or vector that is null, which differs from an empty one.
const NULL: i32 = -1;

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

    /// A buffer, or null.
    pub(super) fn buffer(&mut self) -> Result<Option<Bytes>, Malformed> {
        let length = self.int()?;
        if length == NULL {
            return Ok(None);
        }
        let length = usize::try_from(length).map_err(|_| Malformed)?;
        if length > self.rest.len() {
            return Err(Malformed);
        }
        Ok(Some(self.rest.split_to(length)))
    }

    /// Whether the next field is a null string, buffer or vector.
    pub(super) fn is_null(&self) -> bool {
        self.rest.starts_with(&NULL.to_be_bytes())
    }

    /// A string, or null. Bytes that are not UTF-8 are replaced, as Java does.
    pub(super) fn nullable_string(&mut self) -> Result<Option<String>, Malformed> {
        Ok(self.buffer()?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// A string that must not be null.
    pub(super) fn string(&mut self) -> Result<String, Malformed> {
        self.nullable_string()?.ok_or(Malformed)
    }

    /// A vector. A negative length is that of an empty one.
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

    /// A vector of strings, none of which may be null, nor the vector.
    pub(super) fn strings(&mut self) -> Result<Vec<String>, Malformed> {
        if self.is_null() {
            return Err(Malformed);
        }
        self.vector(Self::string)
    }

    /// An access list. Ids may be null; a null scheme is as unknown as an empty one.
    pub(super) fn acl(&mut self) -> Result<Vec<Acl>, Malformed> {
        self.vector(|reader| {
            let permissions = Permissions(reader.int()?);
            let scheme = reader.nullable_string()?.unwrap_or_default();
            Ok(Acl::new(permissions, Identity { scheme, id: reader.nullable_string()? }))
        })
    }
}
