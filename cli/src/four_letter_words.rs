//! The four-letter words: questions that each server answers for itself, if its whitelist allows them.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
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
    pub(crate) is_secure: bool,
}

/// How the servers are asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words {
    /// For the servers over TLS.
    #[cfg(feature = "tls")]
    pub(crate) secure: Option<crate::secure::Secure>,
}

impl Words {
    /// The answer of a server to a word.
    pub(crate) async fn ask(&self, address: &Address, word: &str) -> io::Result<String> {
        let talk = async {
            let stream = TcpStream::connect(&address.host_and_port).await?;
            match address.is_secure {
                true => self.talk_over_tls(stream, address, word).await,
                false => talk(stream, word).await,
            }
        };
        timeout(ANSWER, talk).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    /// The `tickTime` of the first of these servers that tells it. Servers tell it if their
    /// `4lw.commands.whitelist` has `conf`.
    pub(crate) async fn tick_time(&self, addresses: &[Address]) -> Option<Duration> {
        for address in addresses {
            let answer = self.ask(address, "conf").await.unwrap_or_default();
            let tick = answer.lines().find_map(|line| line.strip_prefix("tickTime="));
            if let Some(tick) = tick.and_then(|millis| millis.trim().parse().ok()) {
                return Some(Duration::from_millis(tick));
            }
        }
        None
    }

    #[cfg(feature = "tls")]
    async fn talk_over_tls(&self, stream: TcpStream, address: &Address, word: &str) -> io::Result<String> {
        let Some(secure) = &self.secure else { return Err(io::Error::other("no settings of TLS")) };
        let host = address.host_and_port.rsplit_once(':').map_or("", |(host, _)| host);
        talk(secure.over(stream, host).await?, word).await
    }

    #[cfg(not(feature = "tls"))]
    async fn talk_over_tls(&self, _: TcpStream, _: &Address, _: &str) -> io::Result<String> {
        Err(io::Error::other("this command was built without TLS; install it with --features tls"))
    }
}

async fn talk(mut stream: impl AsyncRead + AsyncWrite + Unpin, word: &str) -> io::Result<String> {
    stream.write_all(word.as_bytes()).await?;
    stream.flush().await?;
    let mut answer = Vec::new();
    match stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer).await {
        // ZooKeeper ends a connection over TLS without saying so there.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && !answer.is_empty() => {}
        read => drop(read?),
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

impl Address {
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
}
