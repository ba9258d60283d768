/// The first message of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConnectRequest {
    /// The newest transaction the client has seen. A server that is behind refuses the client.
    pub last_zxid: i64,
    /// Session timeout the client would like, in milliseconds.
    pub timeout: i32,
    /// Session to attach to again; 0 asks for a new one.
    pub session: i64,
    /// Password of that session.
    pub password: Vec<u8>,
    /// Whether a read-only server would do. `None` in requests of clients older than 3.4.
    pub read_only: Option<bool>,
}

/// The answer to a [`ConnectRequest`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectResponse {
    /// The negotiated timeout in milliseconds; 0 when the session has ended.
    pub timeout: i32,
    /// The session; 0 when it has ended.
    pub session: i64,
    /// The secret that the client needs to attach again; zeros when the session has ended.
    pub password: Vec<u8>,
    /// Whether to answer with the read-only flag, which clients older than 3.4 do not know.
    pub with_read_only: bool,
}

impl ConnectResponse {
    /// The answer to a client whose session has ended, or whose password is wrong.
    pub fn expired(with_read_only: bool) -> Self {
        Self { timeout: 0, session: 0, password: vec![0; 16], with_read_only }
    }
}
