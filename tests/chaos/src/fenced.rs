//! A resource that checks fencing tokens: it refuses a smaller one than it has seen.
//!
//! It runs in the driver, where no fault strikes it, so that the order of its requests is certain.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

use crate::history::{Entry, Token};
use crate::{Failure, clock};

/// The resource itself.
#[derive(Debug)]
pub(crate) struct Fenced {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    task: AbortHandle,
}

#[derive(Debug, Default)]
struct State {
    marks: BTreeMap<String, Token>,
    entries: Vec<Entry>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Request {
    lock: String,
    token: Token,
    reading: bool,
}

impl Fenced {
    pub(crate) async fn start() -> Result<Self, Failure> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let state = Arc::<Mutex<State>>::default();
        let task = tokio::spawn(serve(listener, Arc::clone(&state))).abort_handle();
        Ok(Self { address, state, task })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// All requests so far, in the order in which they were judged.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.state.lock().entries.clone()
    }
}

impl Drop for Fenced {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, state: Arc<Mutex<State>>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Some(_) = connections.join_next() => {}
            Ok((stream, _)) = listener.accept() => {
                connections.spawn(answer(stream, Arc::clone(&state)));
            }
        }
    }
}

async fn answer(stream: TcpStream, state: Arc<Mutex<State>>) -> Option<()> {
    let (source, mut sink) = stream.into_split();
    let mut lines = BufReader::new(source).lines();
    while let Some(line) = lines.next_line().await.ok()? {
        let request = serde_json::from_str(&line).ok()?;
        let accepted = state.lock().judge(request);
        sink.write_all(if accepted { b"1" } else { b"0" }).await.ok()?;
    }
    Some(())
}

impl State {
    fn judge(&mut self, Request { lock, token, reading }: Request) -> bool {
        let mark = self.marks.entry(lock.clone()).or_default();
        let accepted = token >= *mark;
        if accepted && !reading {
            *mark = token;
        }
        self.entries.push(Entry { at: clock::now(), lock, token, reading, accepted });
        accepted
    }
}

/// A client's connection to it.
#[derive(Debug)]
pub(crate) struct FencedClient(tokio::sync::Mutex<TcpStream>);

impl FencedClient {
    pub(crate) async fn connect(address: SocketAddr) -> Result<Self, Failure> {
        Ok(Self(tokio::sync::Mutex::new(TcpStream::connect(address).await?)))
    }

    /// Whether the resource took this token. Must not be dropped halfway.
    pub(crate) async fn stamp(&self, lock: &str, token: Token, reading: bool) -> Result<bool, Failure> {
        let mut line = serde_json::to_vec(&Request { lock: lock.to_owned(), token, reading })?;
        line.push(b'\n');
        let mut stream = self.0.lock().await;
        stream.write_all(&line).await?;
        Ok(tokio::io::AsyncReadExt::read_u8(&mut *stream).await? == b'1')
    }
}
