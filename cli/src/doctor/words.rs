//! What the answers of a server to the four-letter words say.

use std::collections::BTreeMap;
use std::io;

use crate::escape::printable;
use crate::four_letter_words::{Address, Words};

/// The greatest length of an answer that is no report.
const FAILURE_CHARS: usize = 120;

/// What one server says of itself. A part that it does not answer is missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) address: String,
    /// Why there is no report.
    pub(super) failure: Option<String>,
    pub(super) version: Option<Version>,
    pub(super) mode: Option<String>,
    pub(super) configuration: BTreeMap<String, String>,
    pub(super) metrics: BTreeMap<String, String>,
    /// Whether it accepts connections of this machine and closes them at once.
    pub(super) is_full: bool,
    /// The number of connections from each address of clients.
    pub(super) clients: BTreeMap<String, u64>,
    /// The sessions with ephemeral nodes, and the size of the paths of these in the record of its end.
    pub(super) sessions: BTreeMap<String, u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version(pub(super) u32, pub(super) u32, pub(super) u32);

/// What a server answered.
#[derive(Debug, Default)]
pub(super) struct Answers {
    pub(super) srvr: String,
    pub(super) conf: String,
    pub(super) mntr: String,
    pub(super) dump: String,
    pub(super) cons: String,
}

impl Report {
    /// A number of `conf`.
    pub(super) fn configured(&self, key: &str) -> Option<u64> {
        self.configuration.get(key)?.parse().ok()
    }

    /// A number of `mntr`.
    pub(super) fn metric(&self, key: &str) -> Option<u64> {
        self.metrics.get(key)?.split('.').next()?.parse().ok()
    }

    fn full(address: &str) -> Self {
        Self { address: address.to_owned(), is_full: true, ..Self::default() }
    }

    /// From the answers. A word that is not allowed is answered with a sentence.
    pub(super) fn of(address: &str, answers: &Answers) -> Self {
        let Answers { srvr, conf, mntr, dump, cons } = answers;
        let line = |name: &str| srvr.lines().find_map(|line| line.strip_prefix(name));
        let pairs = |text: &str, separator: char| {
            let pairs = text.lines().filter_map(|line| line.split_once(separator));
            pairs.map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned())).collect()
        };
        let mode = line("Mode: ").map(printable);
        // Another program than ZooKeeper may have answered, with anything.
        let said: String =
            srvr.trim().lines().next().unwrap_or_default().chars().take(FAILURE_CHARS).collect();
        let failure = mode.is_none().then(|| printable(&said));
        Self {
            address: address.to_owned(),
            failure,
            version: line("Zookeeper version: ").and_then(version_in),
            mode,
            configuration: pairs(conf, '='),
            metrics: pairs(mntr, '\t'),
            is_full: false,
            clients: clients_in(cons),
            sessions: sessions_in(dump),
        }
    }
}

/// Below the heading a line for each session, and below that a line for each of its nodes.
fn sessions_in(dump: &str) -> BTreeMap<String, u64> {
    let mut sessions = BTreeMap::new();
    let mut session = None;
    for line in dump.lines().skip_while(|line| !line.starts_with("Sessions with Ephemerals")).skip(1) {
        match line.strip_prefix('\t') {
            None => session = line.strip_suffix(':').filter(|id| id.starts_with("0x")).map(printable),
            Some(path) => {
                if let Some(session) = &session {
                    *sessions.entry(session.clone()).or_default() += path.len() as u64 + 4;
                }
            }
        }
    }
    sessions
}

/// A line for each connection: ` /10.0.0.7:53122[1](queued=0,…)`.
fn clients_in(cons: &str) -> BTreeMap<String, u64> {
    let mut clients = BTreeMap::new();
    for line in cons.lines() {
        let head = line.trim().strip_prefix('/').and_then(|rest| Some(rest.split_once("](")?.0));
        // An IPv6 address has colons itself.
        let host = head.and_then(|head| Some(head.rsplit_once('[')?.0.rsplit_once(':')?.0));
        if let Some(host) = host {
            *clients.entry(printable(host)).or_default() += 1;
        }
    }
    clients
}

/// Asks one server.
pub(super) async fn ask(words: &Words, address: &Address) -> Report {
    let name = &address.host_and_port;
    let answer = async |word| words.ask(address, word).await.unwrap_or_default();
    match words.ask(address, "srvr").await {
        Ok(srvr) if !srvr.trim().is_empty() => {
            let (conf, mntr) = (answer("conf").await, answer("mntr").await);
            let (dump, cons) = (answer("dump").await, answer("cons").await);
            Report::of(name, &Answers { srvr, conf, mntr, dump, cons })
        }
        Err(error) if address.is_secure && is_closed(&error) => {
            let failure = "the port has no TLS, or wants a certificate of the client (--tls-cert)".to_owned();
            Report { address: name.clone(), failure: Some(failure), ..Report::default() }
        }
        Ok(_) => Report::full(name),
        Err(error) if is_closed(&error) => Report::full(name),
        Err(error) => Report { address: name.clone(), failure: Some(error.to_string()), ..Report::default() },
    }
}

/// The server has accepted the connection, and closed it before it read the word.
fn is_closed(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
}

/// `3.8.0-5a02a05eddb59aee6ac762f7ea82e92a68eb9c0f, built on …` is 3.8.0.
fn version_in(text: &str) -> Option<Version> {
    let number = text.split(['-', ',', ' ']).next()?;
    let mut parts = number.split('.').map(|part| part.parse().ok());
    Some(Version(parts.next()??, parts.next()??, parts.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMP: &str = "SessionTracker dump:\nSession Sets (1)/(2):\n2 expire at Thu:\n\t0x1\n\t0x2\n\
                        ephemeral nodes dump:\nSessions with Ephemerals (2):\n0x1:\n\t/a\n\t/b\n0x2:\n\t/c\n\
                        Connections dump:\n\t/d\n";

    #[test]
    fn the_answers_of_a_server_are_read_and_those_not_allowed_are_missing() {
        let srvr =
            "Zookeeper version: 3.8.0-5a02a0, built on 2022\nLatency min/avg/max: 0/0.0/0\nMode: leader\n";
        let cons =
            " /10.0.0.7:4[1](queued=0,sid=0x1)\n /[0:0:0:0:0:0:0:1]:5[0](queued=0)\n /10.0.0.7:6[0](q=0)\n";
        let report = read(srvr, "clientPort=1\ntickTime=2000\n", "zk_watch_count\t7\n", DUMP, cons);
        assert_eq!(report.version, Some(Version(3, 8, 0)));
        assert_eq!(report.mode.as_deref(), Some("leader"));
        assert_eq!(report.configured("tickTime"), Some(2_000));
        assert_eq!(report.metric("zk_watch_count"), Some(7));
        let sessions = [("0x1".to_owned(), 12), ("0x2".to_owned(), 6)];
        assert_eq!(report.sessions, sessions.into());
        let clients = [("10.0.0.7".to_owned(), 2), ("[0:0:0:0:0:0:0:1]".to_owned(), 1)];
        assert_eq!(report.clients, clients.into());
        let closed = "mntr is not executed because it is not in the whitelist.\n";
        let report = read(srvr, closed, closed, closed, closed);
        assert_eq!((report.configured("tickTime"), report.metric("zk_watch_count")), (None, None));
        assert!(report.sessions.is_empty() && report.clients.is_empty());
        let down = "This ZooKeeper instance is not currently serving requests\n";
        assert_eq!(read(down, "", "", "", "").failure.as_deref(), Some(down.trim()));
        let other = "HTTP/1.0 400 Bad\u{1b}[2J\r\n\r\n<html>\n";
        assert_eq!(read(other, "", "", "", "").failure.as_deref(), Some("HTTP/1.0 400 Bad\\u{1b}[2J"));
    }

    fn read(srvr: &str, conf: &str, mntr: &str, dump: &str, cons: &str) -> Report {
        let [srvr, conf, mntr, dump, cons] = [srvr, conf, mntr, dump, cons].map(str::to_owned);
        Report::of("a:1", &Answers { srvr, conf, mntr, dump, cons })
    }
}
