//! A server that answers as a test wants: it speaks just enough of ZooKeeper's protocol for one connection.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// `ping`, the number of an operation.
pub const PING: i32 = 11;

/// A request.
#[derive(Clone, Debug)]
pub struct Request {
    /// The number by which the reply names it.
    pub xid: i32,
    /// The operation.
    pub operation: i32,
}

/// The server, and the operations that it was asked for, without pings.
#[derive(Debug)]
pub struct Server {
    /// Its address.
    pub address: String,
    asked: Arc<Mutex<Vec<i32>>>,
}

impl Server {
    /// Answers each request by the frames that `answer` returns, in their order.
    pub fn start(mut answer: impl FnMut(&Request) -> Vec<Vec<u8>> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            frame(&mut client);
            // Protocol 0, a session timeout of 30 seconds, session 1, 16 bytes of password, not read-only.
            let mut accepted = [0_i32.to_be_bytes(), 30_000_i32.to_be_bytes()].concat();
            accepted.extend(1_i64.to_be_bytes());
            accepted.extend(bytes(&[0; 16]));
            accepted.push(0);
            client.write_all(&bytes(&accepted)).unwrap();
            while let Some(frame) = frame(&mut client) {
                let word = |at: usize| i32::from_be_bytes(frame[at..at + 4].try_into().unwrap());
                let request = Request { xid: word(0), operation: word(4) };
                let frames = match request.operation {
                    PING => vec![reply(&request, &[])],
                    operation => {
                        seen.lock().unwrap().push(operation);
                        answer(&request)
                    }
                };
                for frame in frames {
                    client.write_all(&frame).unwrap();
                }
            }
        });
        Self { address, asked }
    }

    /// The operations that it was asked for, without pings.
    pub fn asked(&self) -> Vec<i32> {
        self.asked.lock().unwrap().clone()
    }
}

fn frame(client: &mut TcpStream) -> Option<Vec<u8>> {
    let mut length = [0; 4];
    client.read_exact(&mut length).ok()?;
    let mut frame = vec![0; u32::from_be_bytes(length) as usize];
    client.read_exact(&mut frame).ok()?;
    Some(frame)
}

/// The bytes behind their length.
pub fn bytes(content: &[u8]) -> Vec<u8> {
    [&i32::try_from(content.len()).unwrap().to_be_bytes(), content].concat()
}

/// A reply without an error.
pub fn reply(request: &Request, body: &[u8]) -> Vec<u8> {
    let header = [&request.xid.to_be_bytes()[..], &1_i64.to_be_bytes(), &0_i32.to_be_bytes()].concat();
    bytes(&[&header, body].concat())
}

/// The reply to a read: the data, and a stat of zeros.
pub fn data(request: &Request, data: &[u8]) -> Vec<u8> {
    reply(request, &[&bytes(data), &[0; 68][..]].concat())
}
