//! A look at one server without a session, to say why it grants none. The client crate does not say it.
//!
//! The server is asked for its statistics (`srvr`), which opens no session. The answer is text where a server
//! expects no TLS, whether or not the command is allowed there.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::config::connect_string::Endpoint;
use crate::time::boot::BootInstant;
use crate::wire::ServerFault;

/// The time for a look at one server: its name, a connection and an answer.
const LIMIT: Duration = Duration::from_millis(800);

/// The command, and one byte more: a server that expects TLS reads five bytes before it refuses.
const COMMAND: &[u8; 5] = b"srvr\n";

/// The outcome of a look.
#[derive(Debug)]
enum Seen {
    NoAddress(io::Error),
    NoConnection(io::Error),
    /// The beginning of the answer. Empty if the server closed the connection.
    Answer(Vec<u8>),
    /// The connection broke before an answer.
    Broken(io::Error),
}

/// Returns the fault of this server. `None` if it answers as a server that can be used.
pub(super) async fn look_at(endpoint: Endpoint) -> Option<ServerFault> {
    let server = endpoint.to_string();
    let is_secure = endpoint.is_secure();
    let (sender, seen) = oneshot::channel();
    // Not a blocking task of the runtime: its end would wait for a name that nobody resolves.
    let thread = thread::Builder::new().name("lockkeeper-look".to_owned());
    let cause = match thread.spawn(move || drop(sender.send(look(&endpoint)))) {
        // Without a thread nothing is known of the server.
        Err(_) => return None,
        Ok(_) => match tokio::time::timeout(LIMIT, seen).await {
            Ok(Ok(seen)) => cause(is_secure, &seen),
            // The name alone may take longer.
            Ok(Err(_)) | Err(_) => Some(no_answer()),
        },
    };
    cause.map(|cause| ServerFault { server, cause })
}

fn look(endpoint: &Endpoint) -> Seen {
    let until = BootInstant::now().after(LIMIT);
    let addresses: Vec<SocketAddr> = match endpoint.address().to_socket_addrs() {
        Ok(addresses) => addresses.collect(),
        Err(error) => return Seen::NoAddress(error),
    };
    let mut last = io::Error::new(ErrorKind::NotFound, "the name has no address");
    for address in addresses {
        match TcpStream::connect_timeout(&address, time_until(until)) {
            Ok(stream) => return answer(stream, until),
            Err(error) => last = error,
        }
    }
    Seen::NoConnection(last)
}

fn answer(mut stream: TcpStream, until: BootInstant) -> Seen {
    let mut first = [0; 64];
    let asked = stream.set_read_timeout(Some(time_until(until))).and_then(|()| stream.write_all(COMMAND));
    match asked.and_then(|()| stream.read(&mut first)) {
        Ok(length) => Seen::Answer(first.into_iter().take(length).collect()),
        Err(error) => Seen::Broken(error),
    }
}

/// Not zero, which means no limit.
fn time_until(until: BootInstant) -> Duration {
    until.since(BootInstant::now()).max(Duration::from_millis(1))
}

/// The fault that a look shows, and what to check.
fn cause(is_secure: bool, seen: &Seen) -> Option<String> {
    let text = match seen {
        Seen::NoAddress(error) => format!("the name cannot be resolved ({error}); is it spelt right?"),
        Seen::NoConnection(error) => match error.kind() {
            ErrorKind::ConnectionRefused => {
                "the connection is refused; is ZooKeeper running there?".to_owned()
            }
            ErrorKind::TimedOut | ErrorKind::WouldBlock => no_answer(),
            _ => format!("no connection: {error}"),
        },
        Seen::Broken(error) if matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock) => {
            no_answer()
        }
        Seen::Answer(answer) if is_text(answer) => return cause_of_text(is_secure, answer),
        // An alert of TLS, or no answer at all.
        Seen::Answer(_) | Seen::Broken(_) if is_secure => {
            "no session over TLS; do the authorities given vouch for the certificate of the server and for \
             this name, and does the server ask for a certificate of ours?"
                .to_owned()
        }
        Seen::Answer(_) | Seen::Broken(_) => {
            "the server closes the connection; does it expect TLS (tcp+tls://), or has it too many \
             connections of this machine (maxClientCnxns)?"
                .to_owned()
        }
    };
    Some(text)
}

fn cause_of_text(is_secure: bool, answer: &[u8]) -> Option<String> {
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

fn no_answer() -> String {
    format!("no answer within {LIMIT:?}; is the address right, and does a firewall let connections through?")
}

fn is_text(answer: &[u8]) -> bool {
    answer.first().is_some_and(|first| first.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_answer_of_a_server_has_its_cause() {
        let answer = |bytes: &[u8]| Seen::Answer(bytes.to_vec());
        let broken = |kind: ErrorKind| Seen::Broken(kind.into());
        for (seen, plain, secure) in [
            (answer(b"Zookeeper version: 3.9.3"), None, Some("expects no TLS")),
            (answer(b"srvr is not executed because"), None, Some("expects no TLS")),
            (answer(b"This ZooKeeper instance is not currently serving"), Some("quorum"), Some("quorum")),
            (answer(b"HTTP/1.1 400 Bad Request"), Some("no ZooKeeper server"), Some("no ZooKeeper server")),
            (answer(&[0x15, 3, 3, 0, 2, 2, 10]), Some("expect TLS"), Some("certificate")),
            (answer(b""), Some("expect TLS"), Some("certificate")),
            (broken(ErrorKind::ConnectionReset), Some("expect TLS"), Some("certificate")),
            (broken(ErrorKind::WouldBlock), Some("no answer"), Some("no answer")),
            (
                Seen::NoConnection(ErrorKind::ConnectionRefused.into()),
                Some("is ZooKeeper running there?"),
                Some("is ZooKeeper running there?"),
            ),
            (Seen::NoConnection(ErrorKind::TimedOut.into()), Some("no answer"), Some("no answer")),
            (Seen::NoAddress(io::Error::other("unknown")), Some("spelt right"), Some("spelt right")),
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
}
