//! A client that sends arbitrary requests, well-formed or not, and returns the raw answers. Written apart
//! from the server's own wire layer, so that one mistake cannot hide in both.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Longer than anything here takes; a test that gets here hangs.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) mod op {
    pub(crate) const CREATE: i32 = 1;
    pub(crate) const DELETE: i32 = 2;
    pub(crate) const EXISTS: i32 = 3;
    pub(crate) const GET_DATA: i32 = 4;
    pub(crate) const SET_DATA: i32 = 5;
    pub(crate) const GET_ACL: i32 = 6;
    pub(crate) const SET_ACL: i32 = 7;
    pub(crate) const GET_CHILDREN: i32 = 8;
    pub(crate) const SYNC: i32 = 9;
    pub(crate) const PING: i32 = 11;
    pub(crate) const GET_CHILDREN2: i32 = 12;
    pub(crate) const CHECK: i32 = 13;
    pub(crate) const MULTI: i32 = 14;
    pub(crate) const CREATE2: i32 = 15;
    pub(crate) const RECONFIG: i32 = 16;
    pub(crate) const CHECK_WATCHES: i32 = 17;
    pub(crate) const REMOVE_WATCHES: i32 = 18;
    pub(crate) const CREATE_CONTAINER: i32 = 19;
    pub(crate) const CREATE_TTL: i32 = 21;
    pub(crate) const MULTI_READ: i32 = 22;
    pub(crate) const AUTH: i32 = 100;
    pub(crate) const SET_WATCHES: i32 = 101;
    pub(crate) const GET_EPHEMERALS: i32 = 103;
    pub(crate) const GET_ALL_CHILDREN_NUMBER: i32 = 104;
    pub(crate) const SET_WATCHES2: i32 = 105;
    pub(crate) const ADD_WATCH: i32 = 106;
    pub(crate) const WHO_AM_I: i32 = 107;
    pub(crate) const CLOSE: i32 = -11;
}

/// Builds a record.
#[derive(Debug, Clone, Default)]
pub(crate) struct Body(pub(crate) Vec<u8>);

impl Body {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn int(mut self, value: i32) -> Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    pub(crate) fn long(mut self, value: i64) -> Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    pub(crate) fn bool(mut self, value: bool) -> Self {
        self.0.push(u8::from(value));
        self
    }

    pub(crate) fn bytes(mut self, value: Option<&[u8]>) -> Self {
        self = self.int(value.map_or(-1, |value| value.len() as i32));
        self.0.extend(value.unwrap_or_default());
        self
    }

    pub(crate) fn str(self, value: &str) -> Self {
        self.bytes(Some(value.as_bytes()))
    }

    pub(crate) fn strs<S: AsRef<str>>(self, values: &[S]) -> Self {
        let body = self.int(values.len() as i32);
        values.iter().fold(body, |body, value| body.str(value.as_ref()))
    }

    pub(crate) fn acl(self, lines: &[(i32, &str, &str)]) -> Self {
        let body = self.int(lines.len() as i32);
        lines.iter().fold(body, |body, (perms, scheme, id)| body.int(*perms).str(scheme).str(id))
    }

    /// A `create`, `create2` or `createContainer` by anyone for anyone.
    pub(crate) fn create(path: &str, flags: i32) -> Self {
        Self::new().str(path).bytes(Some(b"")).acl(&[(31, "world", "anyone")]).int(flags)
    }

    /// Whatever takes a path and whether to watch.
    pub(crate) fn watch(path: &str, watch: bool) -> Self {
        Self::new().str(path).bool(watch)
    }

    /// Whatever takes a path and a version.
    pub(crate) fn version(path: &str, version: i32) -> Self {
        Self::new().str(path).int(version)
    }

    pub(crate) fn set(path: &str, data: &[u8], version: i32) -> Self {
        Self::new().str(path).bytes(Some(data)).int(version)
    }

    pub(crate) fn multi(ops: &[(i32, Self)]) -> Self {
        let body = ops.iter().fold(Self::new(), |body, (op, op_body)| {
            let mut body = body.int(*op).bool(false).int(-1);
            body.0.extend(&op_body.0);
            body
        });
        body.int(-1).bool(true).int(-1)
    }
}

/// Takes a record apart. Panics where it is not what it should be.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn take(&mut self, count: usize) -> &'a [u8] {
        let (front, back) = self.0.split_at(count);
        self.0 = back;
        front
    }

    pub(crate) fn int(&mut self) -> i32 {
        i32::from_be_bytes(self.take(4).try_into().unwrap())
    }

    pub(crate) fn long(&mut self) -> i64 {
        i64::from_be_bytes(self.take(8).try_into().unwrap())
    }

    pub(crate) fn bool(&mut self) -> bool {
        self.take(1)[0] != 0
    }

    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        usize::try_from(self.int()).ok().map(|length| self.take(length))
    }

    pub(crate) fn str(&mut self) -> String {
        String::from_utf8(self.bytes().unwrap().to_vec()).unwrap()
    }

    pub(crate) fn strs(&mut self) -> Vec<String> {
        (0..self.int()).map(|_| self.str()).collect()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) xid: i32,
    pub(crate) zxid: i64,
    pub(crate) err: i32,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    /// The string at the start of the body.
    pub(crate) fn path(&self) -> String {
        Fields(&self.body).str()
    }
}

/// Type and path of a watch event.
pub(crate) type Event = (i32, String);

#[derive(Debug)]
pub(crate) struct Conn {
    stream: TcpStream,
    pub(crate) session: i64,
    pub(crate) password: Vec<u8>,
    pub(crate) timeout: i32,
    pub(crate) last_zxid: i64,
    pub(crate) events: Vec<Event>,
    /// The zxid in the header of each event, −1 without one.
    pub(crate) event_zxids: Vec<i64>,
    xid: i32,
}

impl Conn {
    /// A new session.
    pub(crate) async fn new(address: &str, session_timeout: i32) -> Self {
        Self::attach(address, session_timeout, 0, &[0; 16], 0).await.unwrap()
    }

    /// Attaches to a session. The session of the answer is 0 when the session has ended.
    pub(crate) async fn attach(
        address: &str,
        wanted: i32,
        session: i64,
        password: &[u8],
        seen: i64,
    ) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (password, events) = (password.to_vec(), Vec::new());
        let mut conn = Self {
            stream,
            session,
            password,
            timeout: wanted,
            last_zxid: seen,
            events,
            event_zxids: Vec::new(),
            xid: 0,
        };
        let hello =
            Body::new().int(0).long(seen).int(wanted).long(session).bytes(Some(&conn.password)).bool(false);
        conn.send_frame(&hello.0).await?;
        let answer = conn.frame().await?;
        let mut fields = Fields(&answer);
        assert_eq!(fields.int(), 0, "protocol version");
        conn.timeout = fields.int();
        conn.session = fields.long();
        conn.password = fields.bytes().unwrap().to_vec();
        assert!(!fields.bool(), "read-only");
        assert!(fields.0.is_empty());
        Ok(conn)
    }

    /// Requests a session by the given bytes, over a new connection, and returns the answer.
    pub(crate) async fn hello(&mut self, address: &str, hello: &Body) -> Vec<u8> {
        self.stream = TcpStream::connect(address).await.unwrap();
        self.send_frame(&hello.0).await.unwrap();
        self.frame().await.unwrap()
    }

    /// The same session over a new connection, to any server.
    pub(crate) async fn again(&self, address: &str) -> io::Result<Self> {
        Self::attach(address, self.timeout, self.session, &self.password, self.last_zxid).await
    }

    pub(crate) async fn send_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    pub(crate) async fn send_frame(&mut self, body: &[u8]) -> io::Result<()> {
        let mut frame = (body.len() as i32).to_be_bytes().to_vec();
        frame.extend(body);
        self.send_raw(&frame).await
    }

    /// Sends a request and does not wait. Answers its number.
    pub(crate) async fn send(&mut self, op: i32, body: &Body) -> io::Result<i32> {
        let xid = match op {
            op::PING => -2,
            op::AUTH => -4,
            op::SET_WATCHES | op::SET_WATCHES2 => -8,
            _ => {
                self.xid += 1;
                self.xid
            }
        };
        let mut frame = Body::new().int(xid).int(op);
        frame.0.extend(&body.0);
        self.send_frame(&frame.0).await?;
        Ok(xid)
    }

    pub(crate) async fn frame(&mut self) -> io::Result<Vec<u8>> {
        let read = async {
            let length = self.stream.read_i32().await?;
            let mut frame = vec![0; length as usize];
            self.stream.read_exact(&mut frame).await?;
            Ok(frame)
        };
        let read = timeout(PATIENCE, read).await;
        read.unwrap_or_else(|_| panic!("the server does not answer: {:?}", self.stream.peer_addr()))
    }

    /// The next reply; events before it are kept.
    pub(crate) async fn reply(&mut self) -> io::Result<Reply> {
        loop {
            let frame = self.frame().await?;
            let mut fields = Fields(&frame);
            let (xid, zxid, err) = (fields.int(), fields.long(), fields.int());
            if xid != -1 {
                self.last_zxid = self.last_zxid.max(zxid);
                return Ok(Reply { xid, zxid, err, body: fields.0.to_vec() });
            }
            self.event_zxids.push(zxid);
            assert_eq!(err, 0, "header of an event");
            let (kind, state) = (fields.int(), fields.int());
            assert_eq!(state, 3, "state of an event");
            self.events.push((kind, fields.str()));
        }
    }

    pub(crate) async fn call(&mut self, op: i32, body: &Body) -> io::Result<Reply> {
        let xid = self.send(op, body).await?;
        let reply = self.reply().await?;
        assert_eq!(reply.xid, xid, "reply to another request");
        Ok(reply)
    }

    /// Calls and expects success.
    pub(crate) async fn ok(&mut self, op: i32, body: &Body) -> Reply {
        let reply = self.call(op, body).await.unwrap();
        assert_eq!(reply.err, 0, "op {op}");
        reply
    }

    /// When this returns, all messages that the server had sent have arrived.
    pub(crate) async fn drain(&mut self) -> io::Result<Vec<Event>> {
        self.call(op::PING, &Body::new()).await?;
        Ok(std::mem::take(&mut self.events))
    }

    /// Waits until the server closes the connection.
    pub(crate) async fn closed(&mut self) {
        let error = loop {
            match self.reply().await {
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
        assert!(matches!(error.kind(), UnexpectedEof | ConnectionReset | BrokenPipe), "{error}");
    }
}

impl Conn {
    /// Pings, and fails if anything but the answer arrives.
    pub(crate) async fn drain_only_pings(&mut self) {
        assert_eq!(self.drain().await.unwrap(), []);
    }
}
