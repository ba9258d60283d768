use std::error::Error;

/// A value that a [`SharedValue`](super::SharedValue) stores in the data of its node.
pub trait SharedData: Sized {
    /// The data of the node.
    fn encode(&self) -> Vec<u8>;

    /// The value in the data of a node. `None` if the data is no value, as empty data does for a
    /// number.
    ///
    /// # Errors
    ///
    /// The data is no value of this type.
    fn decode(data: &[u8]) -> Result<Option<Self>, Box<dyn Error + Send + Sync>>;
}

/// The data itself.
impl SharedData for Vec<u8> {
    fn encode(&self) -> Vec<u8> {
        self.clone()
    }

    fn decode(data: &[u8]) -> Result<Option<Self>, Box<dyn Error + Send + Sync>> {
        Ok(Some(data.to_vec()))
    }
}

/// UTF-8.
impl SharedData for String {
    fn encode(&self) -> Vec<u8> {
        self.as_bytes().to_vec()
    }

    fn decode(data: &[u8]) -> Result<Option<Self>, Box<dyn Error + Send + Sync>> {
        Ok(Some(std::str::from_utf8(data)?.to_owned()))
    }
}

/// Four bytes, big-endian: those of Curator's `SharedCount`.
impl SharedData for i32 {
    fn encode(&self) -> Vec<u8> {
        self.to_be_bytes().to_vec()
    }

    fn decode(data: &[u8]) -> Result<Option<Self>, Box<dyn Error + Send + Sync>> {
        number(data, Self::from_be_bytes)
    }
}

/// Eight bytes, big-endian: those of Curator's `DistributedAtomicLong`.
impl SharedData for i64 {
    fn encode(&self) -> Vec<u8> {
        self.to_be_bytes().to_vec()
    }

    fn decode(data: &[u8]) -> Result<Option<Self>, Box<dyn Error + Send + Sync>> {
        number(data, Self::from_be_bytes)
    }
}

fn number<const BYTES: usize, N>(
    data: &[u8],
    read: impl FnOnce([u8; BYTES]) -> N,
) -> Result<Option<N>, Box<dyn Error + Send + Sync>> {
    match data {
        [] => Ok(None),
        data => match data.try_into() {
            Ok(bytes) => Ok(Some(read(bytes))),
            Err(_) => Err(format!("{} bytes instead of {BYTES}", data.len()).into()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_read_as_it_was_written() {
        assert_eq!(SharedData::encode(&-2_i32), [255, 255, 255, 254]);
        assert_eq!(i32::decode(&[0, 0, 1, 2]).unwrap(), Some(258));
        assert_eq!(i64::decode(&5_i64.encode()).unwrap(), Some(5));
        assert_eq!(String::decode("größe".as_bytes()).unwrap().as_deref(), Some("größe"));
        assert_eq!((i32::decode(b"").unwrap(), Vec::decode(b"").unwrap()), (None, Some(Vec::new())));
        assert!(i32::decode(b"12345").is_err() && String::decode(&[0xff]).is_err());
    }
}
