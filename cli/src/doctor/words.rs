//! What the answers of a server to the four-letter words say.

use std::collections::BTreeMap;

use crate::escape::printable;
use crate::four_letter_words::Address;

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
    /// The sessions with ephemeral nodes, and the size of the paths of these in the record of its end.
    pub(super) sessions: BTreeMap<String, u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version(pub(super) u32, pub(super) u32, pub(super) u32);

impl Report {
    /// A number of `conf`.
    pub(super) fn configured(&self, key: &str) -> Option<u64> {
        self.configuration.get(key)?.parse().ok()
    }

    /// A number of `mntr`.
    pub(super) fn metric(&self, key: &str) -> Option<u64> {
        self.metrics.get(key)?.split('.').next()?.parse().ok()
    }

    /// From the answers. A word that is not allowed is answered with a sentence.
    fn of(address: &str, srvr: &str, conf: &str, mntr: &str, dump: &str) -> Self {
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

/// Asks one server.
pub(super) async fn ask(address: &Address) -> Report {
    let name = &address.host_and_port;
    match address.ask("srvr").await {
        Ok(srvr) => {
            let conf = address.ask("conf").await.unwrap_or_default();
            let mntr = address.ask("mntr").await.unwrap_or_default();
            let dump = address.ask("dump").await.unwrap_or_default();
            Report::of(name, &srvr, &conf, &mntr, &dump)
        }
        Err(error) => Report { address: name.clone(), failure: Some(error.to_string()), ..Report::default() },
    }
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
        let report = Report::of("a:1", srvr, "clientPort=1\ntickTime=2000\n", "zk_watch_count\t7\n", DUMP);
        assert_eq!(report.version, Some(Version(3, 8, 0)));
        assert_eq!(report.mode.as_deref(), Some("leader"));
        assert_eq!(report.configured("tickTime"), Some(2_000));
        assert_eq!(report.metric("zk_watch_count"), Some(7));
        let sessions = [("0x1".to_owned(), 12), ("0x2".to_owned(), 6)];
        assert_eq!(report.sessions, sessions.into());
        let closed = "mntr is not executed because it is not in the whitelist.\n";
        let report = Report::of("a:1", srvr, closed, closed, closed);
        assert_eq!((report.configured("tickTime"), report.metric("zk_watch_count")), (None, None));
        assert!(report.sessions.is_empty());
        let down = "This ZooKeeper instance is not currently serving requests\n";
        assert_eq!(Report::of("a:1", down, "", "", "").failure.as_deref(), Some(down.trim()));
        let other = "HTTP/1.0 400 Bad\u{1b}[2J\r\n\r\n<html>\n";
        assert_eq!(
            Report::of("a:1", other, "", "", "").failure.as_deref(),
            Some("HTTP/1.0 400 Bad\\u{1b}[2J")
        );
    }
}
