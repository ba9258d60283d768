//! What a server keeps, and how near that is to its limits. Pure.

use lockkeeper::config::NODE_BYTES_MAX;

use super::finding::Finding;
use super::words::Report;

/// `jute.maxbuffer`, as the servers and Java's client have it by default.
pub(super) const PACKET_MAX: u64 = 0xf_ffff;

/// Watches of one server beyond which some client leaks them, or watches what it should read.
const WATCHES_WARN: u64 = 1_000_000;

/// What is said of the watches, the greatest packets and the open files of the servers.
pub(super) fn judge(reports: &[Report]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = watches(reports).into_iter().chain(packets(reports)).collect();
    findings.extend(sessions(reports));
    findings.extend(reports.iter().filter_map(files));
    findings
}

fn watches(reports: &[Report]) -> Option<Finding> {
    let counts =
        reports.iter().filter_map(|report| Some((report.metric("zk_watch_count")?, &report.address)));
    let (most, address) = counts.clone().max()?;
    if most > WATCHES_WARN {
        return Some(Finding::warn(
            format_args!("{address} keeps {most} watches"),
            "search the client that sets them with the four-letter word wchs; each reconnect sets them again",
        ));
    }
    let all: u64 = counts.map(|(count, _)| count).sum();
    Some(Finding::ok(format!(
        "{all} watches; each client of this library uses at most 112 KiB of watched paths"
    )))
}

fn packets(reports: &[Report]) -> Vec<Finding> {
    let of = |name: &'static str| {
        reports.iter().filter_map(move |report| Some((report.metric(name)?, report.address.as_str())))
    };
    let mut findings = Vec::new();
    if let Some((count, address)) = of("zk_large_requests_rejected").max().filter(|(count, _)| *count > 0) {
        findings.push(Finding::warn(
            format_args!("{address} has rejected {count} requests that were larger than it reads"),
            "search the client that sends them, or raise the server's jute.maxbuffer",
        ));
    }
    if let Some((bytes, address)) = of("zk_max_client_response_size").max() {
        let text = format!("the largest answer of {address} so far had {bytes} bytes");
        findings.push(if bytes > PACKET_MAX / 2 {
            let advice =
                format!("Java's clients read at most {PACKET_MAX} by default: raise their jute.maxbuffer");
            Finding::warn(text, advice)
        } else {
            Finding::ok(format!("{text}; Java's clients read {PACKET_MAX} by default"))
        });
    }
    findings
}

/// The end of a session is one record of the paths of all of its ephemeral nodes.
fn sessions(reports: &[Report]) -> Option<Finding> {
    let sessions = reports.iter().flat_map(|report| &report.sessions);
    let (session, bytes) = sessions.max_by_key(|(_, bytes)| **bytes)?;
    let text = format!("the ephemeral nodes of session {session} have {bytes} bytes of paths");
    Some(match usize::try_from(*bytes).is_ok_and(|bytes| bytes <= NODE_BYTES_MAX) {
        true => Finding::ok(format!("{text}, the most of all sessions")),
        false => Finding::warn(
            text,
            "spread its locks over a ConnectionPool: its end is one record, and a record above the servers' \
             jute.maxbuffer takes all of them down (ZOOKEEPER-4306)",
        ),
    })
}

fn files(report: &Report) -> Option<Finding> {
    let (open, max) =
        (report.metric("zk_open_file_descriptor_count")?, report.metric("zk_max_file_descriptor_count")?);
    (open > max / 10 * 8).then(|| {
        Finding::warn(
            format_args!("{} has {open} of {max} files and connections open", report.address),
            "raise the limit of its process (nofile), or reduce its clients",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    fn level(metrics: &[(&str, &str)], word: &str) -> Option<Level> {
        let pairs = metrics.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let report = Report { address: "a:1".to_owned(), metrics: pairs.collect(), ..Report::default() };
        let findings = judge(&[report, Report::default()]);
        findings.into_iter().find(|finding| finding.text.contains(word)).map(|finding| finding.level)
    }

    #[test]
    fn what_is_near_a_limit_is_worth_a_warning() {
        for (name, value, word, expected) in [
            ("zk_watch_count", "7", "7 watches", Some(Level::Ok)),
            ("zk_watch_count", "1000001", "keeps 1000001 watches", Some(Level::Warn)),
            ("zk_large_requests_rejected", "0", "rejected", None),
            ("zk_large_requests_rejected", "2", "has rejected 2", Some(Level::Warn)),
            ("zk_max_client_response_size", "-1", "largest answer", None),
            ("zk_max_client_response_size", "4096", "largest answer", Some(Level::Ok)),
            ("zk_max_client_response_size", "900000", "jute.maxbuffer", Some(Level::Warn)),
        ] {
            assert_eq!(level(&[(name, value)], word), expected, "{name} {value}");
        }
    }

    #[test]
    fn a_session_with_more_nodes_than_the_default_budget_allows_is_worth_a_warning() {
        let level = |bytes| {
            let sessions = [("0x1".to_owned(), 70), ("0x2".to_owned(), bytes)].into();
            sessions_of(sessions).map(|finding| (finding.level, finding.text.contains("0x2")))
        };
        assert_eq!(level(512 * 1_024), Some((Level::Ok, true)));
        assert_eq!(level(512 * 1_024 + 1), Some((Level::Warn, true)));
        assert_eq!(sessions_of(std::collections::BTreeMap::new()).map(|finding| finding.level), None);
    }

    fn sessions_of(sessions: std::collections::BTreeMap<String, u64>) -> Option<Finding> {
        super::sessions(&[Report { sessions, ..Report::default() }])
    }

    #[test]
    fn a_server_that_may_soon_refuse_connections_is_reported() {
        let files = |open| {
            let metrics = [("zk_open_file_descriptor_count", open), ("zk_max_file_descriptor_count", "1000")];
            level(&metrics, "open")
        };
        assert_eq!((files("500"), files("801")), (None, Some(Level::Warn)));
    }
}
