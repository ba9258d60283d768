use lockkeeper_core::DecodeFailure;

use crate::shared_value::SharedData;

/// How the values of a [`Table`](super::Table) become the bytes of nodes.
pub trait TableCodec<V>: Send + Sync + 'static {
    /// The bytes of a value.
    ///
    /// # Errors
    ///
    /// The value has no bytes in this form.
    fn encode(&self, value: &V) -> Result<Vec<u8>, DecodeFailure>;

    /// The value of the bytes.
    ///
    /// # Errors
    ///
    /// The bytes are no value.
    fn decode(&self, data: &[u8]) -> Result<V, DecodeFailure>;
}

/// JSON, by `serde_json`: the codec of [`Table::new`](super::Table::new).
#[cfg(feature = "json")]
#[derive(Clone, Copy, Debug, Default)]
pub struct Json;

#[cfg(feature = "json")]
impl<V: serde::Serialize + serde::de::DeserializeOwned> TableCodec<V> for Json {
    fn encode(&self, value: &V) -> Result<Vec<u8>, DecodeFailure> {
        Ok(serde_json::to_vec(value)?)
    }

    fn decode(&self, data: &[u8]) -> Result<V, DecodeFailure> {
        Ok(serde_json::from_slice(data)?)
    }
}

/// The bytes of a [`SharedData`], such as a text, a number or the data itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plain;

impl<V: SharedData> TableCodec<V> for Plain {
    fn encode(&self, value: &V) -> Result<Vec<u8>, DecodeFailure> {
        Ok(value.encode())
    }

    fn decode(&self, data: &[u8]) -> Result<V, DecodeFailure> {
        V::decode(data)?.ok_or_else(|| "the node has no value".into())
    }
}
