//! The four-letter words: questions that each server answers for itself, if its whitelist allows them.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long a server may take to answer.
const ANSWER: Duration = Duration::from_secs(3);

/// The greatest answer that is read.
const ANSWER_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// A server of the connect string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// In the form that the resolver takes.
    pub(crate) host_and_port: String,
    /// A port with TLS answers no four-letter words here.
    is_secure: bool,
}

impl Address {
    /// The answer to a word.
    pub(crate) async fn ask(&self, word: &str) -> io::Result<String> {
        if self.is_secure {
            return Err(io::Error::other("a port with TLS, which answers no four-letter words"));
        }
        let talk = async {
            let mut stream = TcpStream::connect(&self.host_and_port).await?;
            stream.write_all(word.as_bytes()).await?;
            let mut answer = Vec::new();
            stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer).await?;
            Ok(String::from_utf8_lossy(&answer).into_owned())
        };
        timeout(ANSWER, talk).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    fn parse(host: &str) -> Self {
        let is_secure = host.starts_with("tcp+tls://");
        let host = host.split_once("://").map_or(host, |(_, host)| host);
        // The colons of an IPv6 address are in brackets.
        let has_port = host.rsplit(']').next().is_some_and(|rest| rest.contains(':'));
        let host_and_port = if has_port { host.to_owned() } else { format!("{host}:2181") };
        Self { host_and_port, is_secure }
    }
}

/// The servers of a connect string that the library accepts.
pub(crate) fn addresses(servers: &str) -> Vec<Address> {
    parts(servers).0.split(',').map(|host| Address::parse(host.trim())).collect()
}

/// The chroot of a connect string that the library accepts.
pub(crate) fn chroot(servers: &str) -> Option<&str> {
    Some(parts(servers).1).filter(|path| path.len() > 1)
}

/// The servers, and what follows them.
fn parts(servers: &str) -> (&str, &str) {
    let from = servers.rfind("://").map_or(0, |at| at + 3);
    let end = servers.get(from..).and_then(|rest| rest.find('/')).map_or(servers.len(), |at| from + at);
    servers.split_at_checked(end).unwrap_or((servers, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_are_read_from_the_connect_string() {
        let read: Vec<(String, bool)> = addresses("a, b:1,tcp+tls://c:2,[::1],[::2]:3/app/x")
            .into_iter()
            .map(|address| (address.host_and_port, address.is_secure))
            .collect();
        let expected =
            [("a:2181", false), ("b:1", false), ("c:2", true), ("[::1]:2181", false), ("[::2]:3", false)];
        assert_eq!(read, expected.map(|(host, is_secure)| (host.to_owned(), is_secure)));
    }

    #[test]
    fn the_chroot_is_what_follows_the_servers() {
        for (servers, expected) in
            [("a", None), ("a:1/", None), ("a,b:1/x/y", Some("/x/y")), ("tcp+tls://a:1/x", Some("/x"))]
        {
            assert_eq!(chroot(servers), expected, "{servers}");
        }
    }

    #[tokio::test]
    async fn a_port_with_tls_is_not_asked() {
        let [address] = &addresses("tcp+tls://127.0.0.1:1/app")[..] else { panic!("one server") };
        assert!(address.ask("srvr").await.unwrap_err().to_string().contains("TLS"));
    }
}
