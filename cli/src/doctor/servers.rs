//! What the reports of the servers mean. Pure.

use std::time::Duration;

use super::finding::Finding;
use super::limits;
use super::words::{Report, Version};

/// The settings of this command.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) session_timeout: Duration,
    pub(super) tick_time: Duration,
}

/// Every finding about the servers.
pub(super) fn judge(reports: &[Report], settings: Settings) -> Vec<Finding> {
    let mut findings: Vec<Finding> = reports.iter().map(reachable).collect();
    findings.push(leader(reports));
    findings.extend(versions(reports));
    findings.push(tick(reports, settings.tick_time));
    findings.extend(session_limits(reports, settings.session_timeout));
    findings.extend(connections(reports));
    findings.extend(limits::judge(reports));
    findings
}

fn reachable(report: &Report) -> Finding {
    if report.is_full {
        return Finding::bad(
            format_args!("{} accepts each connection of this machine, and closes it at once", report.address),
            "most likely this address has as many as one may (maxClientCnxns), or all clients together \
             (maxCnxns): end clients that nobody needs, or raise the limit; for a port with TLS write \
             tcp+tls://",
        );
    }
    match (&report.failure, report.version, &report.mode) {
        (Some(failure), ..) => Finding::warn(
            format_args!("{}: no report: {failure}", report.address),
            "start it, or allow srvr, conf and mntr in its 4lw.commands.whitelist",
        ),
        (None, Some(Version(major, minor, patch)), Some(mode)) => {
            Finding::ok(format!("{}: ZooKeeper {major}.{minor}.{patch}, {mode}", report.address))
        }
        _ => Finding::warn(
            format_args!("{}: the report names no version", report.address),
            "check what listens on this port",
        ),
    }
}

fn leader(reports: &[Report]) -> Finding {
    let is = |report: &&Report, wanted| report.mode.as_deref() == Some(wanted);
    let leading = reports.iter().filter(|report| is(report, "leader"));
    let leaders: Vec<&str> = leading.map(|report| report.address.as_str()).collect();
    let alone = reports.iter().filter(|report| is(report, "standalone")).count();
    match (leaders.as_slice(), alone) {
        ([leader], 0) => Finding::ok(format!("{leader} leads")),
        ([], 1) if reports.len() == 1 => Finding::warn(
            "one server without an ensemble",
            "each restart of it makes every contender wait, and its disk is the only copy: use three",
        ),
        ([], 0) => Finding::warn(
            "no named server leads",
            "name every server in --connect; if all are named, a majority of them is down",
        ),
        (leaders, alone) => Finding::bad(
            format_args!("{} servers lead and {alone} serve alone", leaders.len()),
            "the connect string names servers of several ensembles: a lock would have several holders",
        ),
    }
}

/// Each version once, with its known bugs.
fn versions(reports: &[Report]) -> Vec<Finding> {
    let mut versions: Vec<Version> = reports.iter().filter_map(|report| report.version).collect();
    versions.sort();
    versions.dedup();
    let has_ensemble =
        reports.iter().any(|report| matches!(report.mode.as_deref(), Some("leader" | "follower")));
    versions.into_iter().filter_map(|version| known_bugs(version, has_ensemble)).collect()
}

fn known_bugs(version: Version, has_ensemble: bool) -> Option<Finding> {
    let Version(major, minor, patch) = version;
    let name = format!("ZooKeeper {major}.{minor}.{patch}");
    if version < Version(3, 6, 0) {
        let bug = "has no getEphemerals: every reconnect ends the session and loses its locks";
        return Some(Finding::bad(format_args!("{name} {bug}"), "use 3.9.4 or later"));
    }
    let loses_writes = version < Version(3, 8, 5) || (Version(3, 9, 0)..Version(3, 9, 2)).contains(&version);
    if loses_writes {
        let bug = "can lose committed writes, and so grant a lock twice, when servers of an ensemble are \
                   killed under load (ZOOKEEPER-4643, ZOOKEEPER-4646, ZOOKEEPER-4785)";
        let text = format!("{name} {bug}");
        let advice = "use 3.9.4 or later, or 3.8.5 or later of 3.8";
        let finding = if has_ensemble { Finding::bad(text, advice) } else { Finding::warn(text, advice) };
        return Some(finding);
    }
    ((Version(3, 9, 2)..Version(3, 9, 4)).contains(&version)).then(|| {
        let bug = "can lose committed writes when servers are killed under load (ZOOKEEPER-4925)";
        Finding::warn(format_args!("{name} {bug}"), "use 3.9.4 or later")
    })
}

fn tick(reports: &[Report], setting: Duration) -> Finding {
    let ticks = reports.iter().filter_map(|report| Some((report.configured("tickTime")?, &report.address)));
    match ticks.max() {
        None => Finding::warn(
            format_args!("no server tells its tickTime, and the setting is {setting:?}"),
            "compare them, or allow conf in 4lw.commands.whitelist: a setting below the servers' voids the \
             lease",
        ),
        Some((tick, address)) if Duration::from_millis(tick) > setting => Finding::bad(
            format_args!("{address} has a tickTime of {tick} ms, and the setting is {setting:?}"),
            format_args!("give --tick-time {tick}ms here and in every client: the lease rests on it"),
        ),
        Some((tick, _)) => Finding::ok(format!("tickTime {tick} ms, within the setting of {setting:?}")),
    }
}

fn session_limits(reports: &[Report], timeout: Duration) -> Vec<Finding> {
    let mut findings = Vec::new();
    for report in reports {
        let limits = (report.configured("minSessionTimeout"), report.configured("maxSessionTimeout"));
        if let (Some(min), Some(max)) = limits
            && !(min..=max).contains(&u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX))
        {
            findings.push(Finding::warn(
                format_args!("{} grants sessions of {min} to {max} ms, and not {timeout:?}", report.address),
                "all servers must grant one timeout: set a --session-timeout within the limits of all",
            ));
        }
        let lag = report.configured("syncLimit").zip(report.configured("tickTime"));
        let lag = lag.map(|(limit, tick)| Duration::from_millis(limit.saturating_mul(tick)));
        if let Some(lag) = lag
            && timeout < lag * 2
        {
            findings.push(Finding::warn(
                format_args!("the session timeout is {timeout:?}, and syncLimit × tickTime is {lag:?}"),
                format_args!("with less than {:?} a short partition of one server costs sessions", lag * 2),
            ));
            break;
        }
    }
    findings
}

/// What is said of the connections of a server. Its limit is one for each address of clients.
fn near(report: &Report) -> Option<Finding> {
    let max = report.configured("maxClientCnxns").filter(|max| *max > 0)?;
    let address = &report.address;
    let Some((client, count)) = report.clients.iter().max_by_key(|(_, count)| **count) else {
        // Who they are is not known: only clients behind one address are near.
        let used = report.metric("zk_num_alive_connections").filter(|used| *used >= max)?;
        return Some(Finding::warn(
            format_args!("{address} has {used} connections; maxClientCnxns is {max} for each address"),
            "raise it if clients share an address",
        ));
    };
    let text =
        format!("{address} has {count} connections of {client}; maxClientCnxns is {max} for each address");
    if *count >= max {
        Some(Finding::bad(
            text,
            "it refuses more of that machine: end unused clients there, or raise the limit",
        ))
    } else if *count >= max / 10 * 8 {
        Some(Finding::warn(text, "soon it refuses more of that machine: search for unused clients there"))
    } else {
        None
    }
}

fn connections(reports: &[Report]) -> Vec<Finding> {
    let slow = |report: &Report| {
        let outstanding = report.metric("zk_outstanding_requests")?;
        (outstanding > 100).then(|| {
            Finding::warn(
                format_args!("{} has {outstanding} outstanding requests", report.address),
                "it is overloaded, or its disk is slow",
            )
        })
    };
    reports.iter().flat_map(|report| [near(report), slow(report)]).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    fn report(version: (u32, u32, u32), mode: &str, settings: &[(&str, &str)]) -> Report {
        let pairs = settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        Report {
            address: format!("{mode}:1"),
            version: Some(Version(version.0, version.1, version.2)),
            mode: Some(mode.to_owned()),
            configuration: pairs.clone().collect(),
            metrics: pairs.collect(),
            ..Report::default()
        }
    }

    fn settings() -> Settings {
        Settings { session_timeout: Duration::from_secs(20), tick_time: Duration::from_secs(3) }
    }

    fn worst(reports: &[Report], word: &str) -> Option<Level> {
        let findings = judge(reports, settings()).into_iter().filter(|finding| finding.text.contains(word));
        findings.map(|finding| finding.level).max()
    }

    #[test]
    fn known_bad_versions_are_named_with_their_issue() {
        for (version, mode, word, level) in [
            ((3, 4, 14), "follower", "getEphemerals", Level::Bad),
            ((3, 8, 0), "follower", "ZOOKEEPER-4643", Level::Bad),
            ((3, 8, 0), "standalone", "ZOOKEEPER-4643", Level::Warn),
            ((3, 8, 4), "leader", "ZOOKEEPER-4785", Level::Bad),
            ((3, 9, 1), "leader", "ZOOKEEPER-4646", Level::Bad),
            ((3, 9, 3), "leader", "ZOOKEEPER-4925", Level::Warn),
        ] {
            assert_eq!(worst(&[report(version, mode, &[])], word), Some(level), "{version:?} {mode}");
        }
        for version in [(3, 8, 5), (3, 8, 6), (3, 9, 4), (3, 9, 5)] {
            assert_eq!(worst(&[report(version, "leader", &[])], "ZOOKEEPER-"), None, "{version:?}");
        }
    }

    #[test]
    fn a_tick_above_the_setting_is_bad_and_an_unknown_one_is_reported() {
        let with = |tick| [report((3, 9, 5), "leader", &[("tickTime", tick)])];
        assert_eq!(worst(&with("4000"), "tickTime"), Some(Level::Bad));
        assert_eq!(worst(&with("3000"), "tickTime"), Some(Level::Ok));
        assert_eq!(worst(&[report((3, 9, 5), "leader", &[])], "tickTime"), Some(Level::Warn));
    }

    #[test]
    fn a_machine_at_its_limit_of_connections_is_bad_and_one_that_is_near_is_worth_a_warning() {
        let with = |count| {
            let report =
                report((3, 9, 5), "leader", &[("maxClientCnxns", "60"), ("zk_num_alive_connections", "61")]);
            let clients = [("10.0.0.7".to_owned(), count), ("10.0.0.8".to_owned(), 1)].into();
            worst(&[Report { clients, ..report }], "10.0.0.7")
        };
        assert_eq!((with(47), with(48), with(60)), (None, Some(Level::Warn), Some(Level::Bad)));
        let unknown = [("maxClientCnxns", "60"), ("zk_num_alive_connections", "61")];
        assert_eq!(worst(&[report((3, 9, 5), "leader", &unknown)], "61 connections"), Some(Level::Warn));
        let full = Report { is_full: true, ..Report::default() };
        assert_eq!(worst(&[full], "maxClientCnxns"), Some(Level::Bad));
    }

    #[test]
    fn servers_of_two_ensembles_are_bad() {
        let [leader, follower, alone] =
            ["leader", "follower", "standalone"].map(|mode| report((3, 9, 5), mode, &[]));
        assert_eq!(worst(&[leader.clone(), follower.clone()], "leads"), Some(Level::Ok));
        assert_eq!(worst(&[leader.clone(), leader.clone()], "several ensembles"), Some(Level::Bad));
        assert_eq!(worst(&[leader, alone.clone()], "several ensembles"), Some(Level::Bad));
        assert_eq!(worst(&[follower], "no named server leads"), Some(Level::Warn));
        assert_eq!(worst(&[alone], "without an ensemble"), Some(Level::Warn));
    }

    #[test]
    fn a_session_timeout_that_the_servers_do_not_grant_is_reported() {
        let limits = [("minSessionTimeout", "4000"), ("maxSessionTimeout", "10000")];
        assert_eq!(worst(&[report((3, 9, 5), "leader", &limits)], "grants sessions"), Some(Level::Warn));
        let slow = [("syncLimit", "6"), ("tickTime", "2000")];
        assert_eq!(worst(&[report((3, 9, 5), "leader", &slow)], "syncLimit"), Some(Level::Warn));
    }
}
