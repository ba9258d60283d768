//! The first message of each side.

use std::time::Duration;

use bytes::Bytes;

use super::{Reader, Writer};
use crate::error::HarnessError;

/// A client asks for a new session (0), or for one to be attached again.
#[derive(Clone, Debug)]
pub(crate) struct ConnectRequest {
    pub(crate) timeout: Duration,
    pub(crate) session: i64,
    pub(crate) password: Vec<u8>,
}

impl ConnectRequest {
    pub(crate) fn encode(&self) -> Bytes {
        let timeout = i32::try_from(self.timeout.as_millis()).unwrap_or(i32::MAX);
        // Version 0; last zxid 0, so that any server is recent enough; not content with a read-only server.
        Writer::default()
            .int(0)
            .long(0)
            .int(timeout)
            .long(self.session)
            .buffer(&self.password)
            .bool(false)
            .finish()
    }
}

/// The server grants a session, or refuses it (timeout 0).
#[derive(Clone, Debug)]
pub(crate) struct ConnectResponse {
    pub(crate) timeout: Duration,
    pub(crate) session: i64,
    pub(crate) password: Vec<u8>,
}

impl ConnectResponse {
    pub(crate) fn decode(message: &[u8]) -> Result<Self, HarnessError> {
        let mut reader = Reader::new(message);
        let _version = reader.int()?;
        Ok(Self {
            timeout: Duration::from_millis(u64::try_from(reader.int()?).unwrap_or(0)),
            session: reader.long()?,
            password: reader.buffer()?.to_vec(),
        })
    }

    /// Whether the session is there. A refused one has expired, or its password is wrong.
    pub(crate) fn is_granted(&self) -> bool {
        !self.timeout.is_zero()
    }
}
