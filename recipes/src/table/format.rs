use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use lockkeeper_core::{DecodeFailure, WholePath};

use super::codec::TableCodec;
use super::error::TableError;
use super::stored::{Stored, to_data};

/// Makes a value of bytes that were written with an older schema.
type Convert<V> = dyn Fn(u32, &[u8]) -> Result<V, DecodeFailure> + Send + Sync;

/// How the values of a table become the data of nodes, and the other way round.
pub(super) struct Format<V> {
    codec: Arc<dyn TableCodec<V>>,
    schema: u32,
    convert: Option<Arc<Convert<V>>>,
}

impl<V> Clone for Format<V> {
    fn clone(&self) -> Self {
        Self { codec: Arc::clone(&self.codec), schema: self.schema, convert: self.convert.clone() }
    }
}

impl<V: 'static> Format<V> {
    pub(super) fn new(codec: impl TableCodec<V>) -> Self {
        Self { codec: Arc::new(codec), schema: 0, convert: None }
    }

    pub(super) fn with_schema(self, schema: u32, convert: Arc<Convert<V>>) -> Self {
        Self { schema, convert: Some(convert), ..self }
    }

    /// The data of a node with this value.
    pub(super) fn encode(&self, path: &WholePath, value: &V) -> Result<Vec<u8>, TableError> {
        match self.codec.encode(value) {
            Ok(payload) => Ok(to_data(self.schema, payload)),
            Err(cause) => Err(TableError::Unencodable { path: path.clone(), cause: cause.to_string() }),
        }
    }

    /// The value in the data of a node; `None` for a removed one. A codec that panics fails, as that of a
    /// view.
    pub(super) fn decode(&self, path: &WholePath, data: &[u8]) -> Result<Option<V>, TableError> {
        let Stored::Value { schema, payload } = Stored::of(data) else { return Ok(None) };
        let (path, known) = (path.clone(), self.schema);
        if schema > known {
            return Err(TableError::NewerSchema { path, found: schema, known });
        }
        let decode = || match &self.convert {
            Some(convert) if schema < known => convert(schema, payload),
            _ => self.codec.decode(payload),
        };
        let cause = match catch_unwind(AssertUnwindSafe(decode)) {
            Ok(Ok(value)) => return Ok(Some(value)),
            Ok(Err(cause)) => cause.to_string(),
            Err(_) => "the decoder panicked".to_owned(),
        };
        Err(TableError::Undecodable { path, cause })
    }
}
