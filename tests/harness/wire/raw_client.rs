//! A client of the harness's own, so that what a test sees does not depend on the client under test.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::{SinkExt, StreamExt};
use tokio::net::TcpStream;
use tokio_util::codec::{Framed, LengthDelimitedCodec};

use super::{ConnectRequest, ConnectResponse, CreateMode, OpCode, Reader, Stat, Writer, frames};
use crate::error::HarnessError;
use crate::timing::{Timing, within};

/// Asked for by [`RawClient::connect`]; it is the default maximum of the harness's servers.
const SESSION_TIMEOUT: Duration = Duration::from_secs(60);
const NO_NODE: i32 = -101;
const XID_AUTH: i32 = -4;

/// A plain ZooKeeper client: one connection, one request at a time, no pings and no reconnects.
///
/// Its session lives until [`RawClient::close`], or 60 s beyond the last request: make one when there is
/// nodes to read. Dropping it leaves the session to expire, as a crashed client does.
#[derive(Debug)]
pub struct RawClient {
    frames: Framed<TcpStream, LengthDelimitedCodec>,
    session: i64,
    password: Vec<u8>,
    timeout: Duration,
    xid: i32,
}

impl RawClient {
    /// Connects to one server with a new session of 60 s, or what the server grants.
    ///
    /// # Errors
    ///
    /// [`HarnessError::Io`] or [`HarnessError::Timeout`] if the server does not answer.
    pub async fn connect(address: SocketAddr) -> Result<Self, HarnessError> {
        Self::connect_for(address, SESSION_TIMEOUT).await
    }

    /// Connects to one server with a new session of `timeout`, or what the server grants.
    ///
    /// # Errors
    ///
    /// As [`RawClient::connect`].
    pub async fn connect_for(address: SocketAddr, timeout: Duration) -> Result<Self, HarnessError> {
        Self::handshake(address, ConnectRequest { timeout, session: 0, password: vec![0; 16] }).await
    }

    /// Attaches an existing session; the server cuts the connection that has it now.
    ///
    /// # Errors
    ///
    /// [`HarnessError::SessionRefused`] if it has expired or the password is wrong; else as
    /// [`RawClient::connect`].
    pub async fn attach(address: SocketAddr, session: i64, password: &[u8]) -> Result<Self, HarnessError> {
        let request = ConnectRequest { timeout: SESSION_TIMEOUT, session, password: password.to_vec() };
        Self::handshake(address, request).await
    }

    async fn handshake(address: SocketAddr, request: ConnectRequest) -> Result<Self, HarnessError> {
        let connect = TcpStream::connect(address);
        let stream = within(format!("{address} accepts"), Timing::answer(), connect)
            .await?
            .map_err(HarnessError::io(format!("connect to {address}")))?;
        stream.set_nodelay(true).map_err(HarnessError::io("set TCP_NODELAY"))?;
        let frames = Framed::new(stream, frames());
        let mut client = Self { frames, session: 0, password: Vec::new(), timeout: Duration::ZERO, xid: 0 };
        client.send(request.encode()).await?;
        let granted = ConnectResponse::decode(&client.receive().await?)?;
        if !granted.is_granted() {
            return Err(HarnessError::SessionRefused { session: request.session });
        }
        Ok(Self { session: granted.session, password: granted.password, timeout: granted.timeout, ..client })
    }

    /// The session, which appears in the servers' reports beside those under test.
    #[must_use]
    pub fn session(&self) -> i64 {
        self.session
    }

    /// The secret that proves the ownership of the session.
    #[must_use]
    pub fn password(&self) -> &[u8] {
        &self.password
    }

    /// The session timeout that the server granted.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Creates a node that anyone may use; yields its name, which a sequential node gets only now, and its
    /// stat.
    ///
    /// # Errors
    ///
    /// [`HarnessError::Answered`] as the server refuses it; else as [`RawClient::connect`]. So do all
    /// requests below.
    pub async fn create(
        &mut self,
        path: &str,
        data: &[u8],
        mode: CreateMode,
    ) -> Result<(String, Stat), HarnessError> {
        // One entry: all permissions (31) to world:anyone.
        let body =
            Writer::default().string(path).buffer(data).int(1).int(31).string("world").string("anyone");
        let reply = self.request(mode.op(), path, body.int(mode.flags())).await?;
        let mut reply = Reader::new(&reply);
        Ok((reply.string()?, Stat::decode(&mut reply)?))
    }

    /// Deletes a node of any version.
    ///
    /// # Errors
    ///
    /// As [`RawClient::create`].
    pub async fn delete(&mut self, path: &str) -> Result<(), HarnessError> {
        self.request(OpCode::Delete, path, Writer::default().string(path).int(-1)).await.map(|_| ())
    }

    /// Replaces a node's data, of any version.
    ///
    /// # Errors
    ///
    /// As [`RawClient::create`].
    pub async fn set_data(&mut self, path: &str, data: &[u8]) -> Result<Stat, HarnessError> {
        let reply =
            self.request(OpCode::SetData, path, Writer::default().string(path).buffer(data).int(-1)).await?;
        Stat::decode(&mut Reader::new(&reply))
    }

    /// A node's data and stat.
    ///
    /// # Errors
    ///
    /// As [`RawClient::create`].
    pub async fn data(&mut self, path: &str) -> Result<(Vec<u8>, Stat), HarnessError> {
        let reply = self.request(OpCode::GetData, path, Writer::default().string(path).bool(false)).await?;
        let mut reply = Reader::new(&reply);
        Ok((reply.buffer()?.to_vec(), Stat::decode(&mut reply)?))
    }

    /// A node's stat, `None` if there is no such node.
    ///
    /// # Errors
    ///
    /// As [`RawClient::create`].
    pub async fn exists(&mut self, path: &str) -> Result<Option<Stat>, HarnessError> {
        self.read(path, false).await
    }

    /// As [`RawClient::exists`], and leaves a watch.
    ///
    /// # Errors
    ///
    /// As [`RawClient::create`].
    pub async fn watch(&mut self, path: &str) -> Result<Option<Stat>, HarnessError> {
        self.read(path, true).await
    }

    /// The names of a node's children, sorted.
    ///
    /// # Errors
    ///
    /// As [`RawClient::create`].
    pub async fn children(&mut self, path: &str) -> Result<Vec<String>, HarnessError> {
        let reply =
            self.request(OpCode::GetChildren, path, Writer::default().string(path).bool(false)).await?;
        let mut reply = Reader::new(&reply);
        let count = reply.int()?;
        let mut names = (0..count).map(|_| reply.string()).collect::<Result<Vec<_>, _>>()?;
        names.sort_unstable();
        Ok(names)
    }

    /// Adds an identity to this connection; the server accepts any.
    ///
    /// # Errors
    ///
    /// As [`RawClient::create`].
    pub async fn authenticate(&mut self, scheme: &str, secret: &str) -> Result<(), HarnessError> {
        let body = Writer::default().int(0).string(scheme).string(secret);
        self.numbered(XID_AUTH, OpCode::Auth, "", body).await.map(|_| ())
    }

    /// A node's access list: permissions, scheme and id of each entry.
    ///
    /// # Errors
    ///
    /// As [`RawClient::create`].
    pub async fn access_list(&mut self, path: &str) -> Result<Vec<(i32, String, String)>, HarnessError> {
        let reply = self.request(OpCode::GetAcl, path, Writer::default().string(path)).await?;
        let mut reply = Reader::new(&reply);
        let count = reply.int()?;
        (0..count).map(|_| Ok((reply.int()?, reply.string()?, reply.string()?))).collect()
    }

    /// Waits until this connection's server has caught up with the leader.
    ///
    /// # Errors
    ///
    /// As [`RawClient::create`].
    pub async fn sync(&mut self, path: &str) -> Result<(), HarnessError> {
        self.request(OpCode::Sync, path, Writer::default().string(path)).await.map(|_| ())
    }

    /// Ends the session; its ephemeral nodes are deleted when this returns.
    ///
    /// # Errors
    ///
    /// As [`RawClient::create`].
    pub async fn close(mut self) -> Result<(), HarnessError> {
        self.request(OpCode::CloseSession, "", Writer::default()).await.map(|_| ())
    }

    async fn read(&mut self, path: &str, watch: bool) -> Result<Option<Stat>, HarnessError> {
        match self.request(OpCode::Exists, path, Writer::default().string(path).bool(watch)).await {
            Ok(reply) => Stat::decode(&mut Reader::new(&reply)).map(Some),
            Err(HarnessError::Answered { code: NO_NODE, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sends one request and yields the body of its reply.
    async fn request(&mut self, op: OpCode, path: &str, body: Writer) -> Result<Bytes, HarnessError> {
        self.xid += 1;
        self.numbered(self.xid, op, path, body).await
    }

    async fn numbered(
        &mut self,
        number: i32,
        op: OpCode,
        path: &str,
        body: Writer,
    ) -> Result<Bytes, HarnessError> {
        let mut message = BytesMut::from(&*Writer::default().int(number).int(op.to_wire()).finish());
        message.extend_from_slice(&body.finish());
        self.send(message.freeze()).await?;
        loop {
            let mut reply = self.receive().await?.freeze();
            let mut header = Reader::new(&reply);
            let (xid, _zxid, code) = (header.int()?, header.long()?, header.int()?);
            // Anything else is a watch event, which no caller waits for.
            if xid == number {
                return match code {
                    0 => Ok(reply.split_off(16)),
                    code => Err(HarnessError::Answered { op, path: path.to_owned(), code }),
                };
            }
        }
    }

    async fn send(&mut self, message: Bytes) -> Result<(), HarnessError> {
        self.frames.send(message).await.map_err(HarnessError::io("send to ZooKeeper"))
    }

    async fn receive(&mut self) -> Result<BytesMut, HarnessError> {
        let next = within("ZooKeeper replies to the raw client", Timing::event(), self.frames.next()).await?;
        next.unwrap_or_else(|| Err(std::io::ErrorKind::UnexpectedEof.into()))
            .map_err(HarnessError::io("receive from ZooKeeper"))
    }
}
