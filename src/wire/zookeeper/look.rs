//! A look at one server without a session, to say why it grants none. The client crate does not say it.
//!
//! The server is asked for its statistics (`srvr`), which opens no session. The answer is text where a server
//! expects no TLS, whether or not the command is allowed there.

use std::future::Future;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, ToSocketAddrs};
use std::thread;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use crate::config::connect_string::Endpoint;
use crate::wire::ServerFault;

/// The time for a look at one server: its name, a connection and an answer.
const LIMIT: Duration = Duration::from_millis(800);

/// The command, and one byte more: a server that expects TLS reads five bytes before it refuses.
const COMMAND: &[u8; 5] = b"srvr\n";

/// The outcome of a look.
#[derive(Debug)]
enum LookOutcome {
    NoAddress(io::Error),
    NoConnection(io::Error),
    /// The beginning of the answer. Empty if the server closed the connection.
    Answer(Vec<u8>),
    /// The server accepted the connection, which broke before an answer, or has none in time.
    NoAnswer(io::Error),
}

/// Returns the fault of this server. `None` if it answers as a server that can be used.
pub(super) async fn look_at(endpoint: Endpoint) -> Option<ServerFault> {
    let seen = look(&endpoint).await;
    let cause = cause(endpoint.is_secure(), &seen)?;
    Some(ServerFault { server: endpoint.to_string(), cause })
}

async fn look(endpoint: &Endpoint) -> LookOutcome {
    let limit = Instant::now() + LIMIT;
    let addresses = match until(limit, addresses(endpoint.clone())).await {
        Ok(addresses) => addresses,
        Err(error) => return LookOutcome::NoAddress(error),
    };
    let mut last = io::Error::new(ErrorKind::NotFound, "the name has no address");
    for address in addresses {
        match until(limit, TcpStream::connect(address)).await {
            Ok(stream) => {
                return until(limit, answer(stream))
                    .await
                    .map_or_else(LookOutcome::NoAnswer, LookOutcome::Answer);
            }
            Err(error) => last = error,
        }
    }
    LookOutcome::NoConnection(last)
}

/// Resolves the name of a server in a thread of its own. The end of the runtime would wait for a blocking
/// task, and so for a name that nobody resolves.
async fn addresses(endpoint: Endpoint) -> io::Result<Vec<SocketAddr>> {
    let (sender, resolved) = oneshot::channel();
    let resolve = move || endpoint.address().to_socket_addrs().map(Iterator::collect);
    thread::Builder::new().name("lockkeeper-look".to_owned()).spawn(move || drop(sender.send(resolve())))?;
    resolved.await.map_err(io::Error::other)?
}

async fn answer(mut stream: TcpStream) -> io::Result<Vec<u8>> {
    let mut first = [0; 64];
    stream.write_all(COMMAND).await?;
    let length = stream.read(&mut first).await?;
    Ok(first.into_iter().take(length).collect())
}

/// The result of `work`, or [`ErrorKind::TimedOut`] at the limit.
async fn until<T>(limit: Instant, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout_at(limit, work).await?
}

/// The fault that a look shows, and what to check.
fn cause(is_secure: bool, seen: &LookOutcome) -> Option<String> {
    let text = match seen {
        LookOutcome::NoAddress(error) => format!("the name cannot be resolved ({error}); is it spelt right?"),
        LookOutcome::NoConnection(error) => match error.kind() {
            ErrorKind::ConnectionRefused => {
                "the connection is refused; is ZooKeeper running there?".to_owned()
            }
            ErrorKind::TimedOut => format!(
                "no connection within {LIMIT:?}; is the address right, \
                 and does a firewall let connections through?"
            ),
            _ => format!("no connection: {error}"),
        },
        LookOutcome::NoAnswer(error) if error.kind() == ErrorKind::TimedOut => {
            let tls = if is_secure { "" } else { ", and does it expect TLS (tcp+tls://)" };
            format!(
                "the server accepts the connection, but sends no answer within {LIMIT:?}; is it ZooKeeper, \
                 is it suspended or overloaded{tls}?"
            )
        }
        LookOutcome::Answer(answer) if is_text(answer) => return cause_of_text(is_secure, answer),
        // An alert of TLS, or no answer at all.
        LookOutcome::Answer(_) | LookOutcome::NoAnswer(_) if is_secure => {
            "no session over TLS; do the authorities given vouch for the certificate of the server and for \
             this name, and does the server ask for a certificate of ours?"
                .to_owned()
        }
        LookOutcome::Answer(_) | LookOutcome::NoAnswer(_) => {
            "the server closes the connection; does it expect TLS (tcp+tls://), or has it too many \
             connections of this machine (maxClientCnxns)?"
                .to_owned()
        }
    };
    Some(text)
}

pub(super) fn cause_of_text(is_secure: bool, answer: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(answer);
    let has = |words: &str| text.contains(words);
    if has("not currently serving") {
        return Some("the server has no quorum; are most of the servers running?".to_owned());
    }
    if !(has("Zookeeper version") || has("is not executed") || has("srvr")) {
        let line = text.lines().next().unwrap_or_default();
        return Some(format!("this is no ZooKeeper server: it answers {line:?}"));
    }
    is_secure.then(|| "the server expects no TLS; use tcp://, or the port with TLS".to_owned())
}

fn is_text(answer: &[u8]) -> bool {
    answer.first().is_some_and(|first| first.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::connect_string::ConnectString;

    #[test]
    fn each_answer_of_a_server_has_its_cause() {
        let answer = |bytes: &[u8]| LookOutcome::Answer(bytes.to_vec());
        let broken = |kind: ErrorKind| LookOutcome::NoAnswer(kind.into());
        for (seen, plain, secure) in [
            (answer(b"Zookeeper version: 3.9.3"), None, Some("expects no TLS")),
            (answer(b"srvr is not executed because"), None, Some("expects no TLS")),
            (answer(b"This ZooKeeper instance is not currently serving"), Some("quorum"), Some("quorum")),
            (answer(b"HTTP/1.1 400 Bad Request"), Some("no ZooKeeper server"), Some("no ZooKeeper server")),
            (answer(&[0x15, 3, 3, 0, 2, 2, 10]), Some("expect TLS"), Some("certificate")),
            (answer(b""), Some("expect TLS"), Some("certificate")),
            (broken(ErrorKind::ConnectionReset), Some("expect TLS"), Some("certificate")),
            (broken(ErrorKind::TimedOut), Some("expect TLS"), Some("accepts the connection")),
            (
                LookOutcome::NoConnection(ErrorKind::ConnectionRefused.into()),
                Some("is ZooKeeper running there?"),
                Some("is ZooKeeper running there?"),
            ),
            (LookOutcome::NoConnection(ErrorKind::TimedOut.into()), Some("firewall"), Some("firewall")),
            (LookOutcome::NoAddress(io::Error::other("unknown")), Some("spelt right"), Some("spelt right")),
        ] {
            for (is_secure, expected) in [(false, plain), (true, secure)] {
                let found = cause(is_secure, &seen);
                match expected {
                    Some(words) => assert!(found.as_ref().is_some_and(|of| of.contains(words)), "{found:?}"),
                    None => assert_eq!(found, None, "{seen:?}"),
                }
            }
        }
    }

    #[tokio::test]
    async fn a_server_that_accepts_and_sends_nothing_is_not_a_server_behind_a_firewall() {
        // The system accepts the connection, and nobody reads.
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let servers: ConnectString = silent.local_addr().unwrap().to_string().parse().unwrap();
        let [endpoint] = servers.endpoints() else { panic!("{servers:?}") };
        let fault = look_at(endpoint.clone()).await.unwrap();
        assert!(fault.cause.contains("accepts the connection"), "{}", fault.cause);
    }
}
