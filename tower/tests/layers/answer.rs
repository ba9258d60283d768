//! A request over a socket, and its answer.

use std::net::SocketAddr;

use lockkeeper_tests::{Timing, bounded};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The answer to a request.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Answer {
    /// Reads an answer to its end: the server closes the connection behind it.
    async fn read(stream: &mut TcpStream) -> Self {
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        let (head, body) = text.split_once("\r\n\r\n").expect("a whole answer");
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Self { status, head: head.to_owned(), body: body.to_owned() }
    }

    /// The value of a field, whose name is in lower case.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let fields = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        fields.filter(|(of, _)| *of == name).map(|(_, value)| value).next()
    }

    /// `Retry-After`, in seconds.
    pub(crate) fn retry_after(&self) -> u64 {
        self.field("retry-after").expect("a time").parse().unwrap()
    }
}

/// Sends a request, and waits for nothing.
pub(crate) async fn send(address: SocketAddr, path: &str, field: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let text = format!("GET {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n{field}\r\n");
    stream.write_all(text.as_bytes()).await.unwrap();
    stream
}

/// The answer to a request with a further field, as a whole line.
pub(crate) async fn get_with(address: SocketAddr, path: &str, field: &str) -> Answer {
    let answer = async { Answer::read(&mut send(address, path, field).await).await };
    bounded(Timing::settle(), answer).await.expect("an answer")
}

/// The answer to a request.
pub(crate) async fn get(address: SocketAddr, path: &str) -> Answer {
    get_with(address, path, "").await
}
