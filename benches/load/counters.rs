//! The cost of a load: the servers' own counters, and processor time.

use std::net::SocketAddr;
use std::time::Instant;

use lockkeeper_tests::inspect;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Map, Value};
use tokio::net::lookup_host;

use crate::measurements::now;

/// Where `/proc` counts processor time: in hundredths of a second, on every Linux.
const MICROSECONDS_PER_TICK: u64 = 10_000;

/// The variable that names the servers' processes, by their numbers with commas between.
const SERVER_PIDS: &str = "LOCKKEEPER_BENCH_SERVER_PIDS";

/// Where counters are read.
#[derive(Debug)]
pub(crate) struct Meters {
    servers: Vec<SocketAddr>,
    pids: Vec<u32>,
}

/// The counters at one instant. An unreadable one is `None`.
#[derive(Debug)]
pub(crate) struct Reading {
    at: Instant,
    packets: Option<u64>,
    reads: Option<u64>,
    writes: Option<u64>,
    own_cpu: u64,
    servers_cpu: Option<u64>,
}

impl Meters {
    /// Of the servers in a connect string, and of the processes that the environment names.
    pub(crate) async fn of(connect: &str) -> Self {
        let hosts = connect.split('/').next().unwrap_or_default();
        let mut servers = Vec::new();
        for host in hosts.split(',') {
            servers.extend(lookup_host(host).await.ok().and_then(|mut found| found.next()));
        }
        let pids = std::env::var(SERVER_PIDS).unwrap_or_default();
        Self { servers, pids: pids.split(',').filter_map(|pid| pid.parse().ok()).collect() }
    }

    pub(crate) async fn read(&self) -> Reading {
        let mut reports = Vec::new();
        for server in &self.servers {
            reports.extend(inspect::word(*server, "mntr").await.ok());
        }
        let sum = |name: &str| -> Option<u64> {
            let found: Vec<u64> = reports.iter().filter_map(|report| counter(report, name)).collect();
            (!found.is_empty() && found.len() == self.servers.len()).then(|| found.iter().sum())
        };
        Reading {
            at: now(),
            packets: sum("zk_packets_received"),
            reads: sum("zk_cnt_readlatency"),
            writes: sum("zk_cnt_updatelatency"),
            own_cpu: own_cpu(),
            servers_cpu: self.servers_cpu(),
        }
    }

    fn servers_cpu(&self) -> Option<u64> {
        let each = self.pids.iter().map(|pid| cpu_of(*pid));
        let sum = each.sum::<Option<u64>>()?;
        (!self.pids.is_empty()).then_some(sum)
    }

    /// How many servers count the question for their counters as a packet.
    fn questions(&self) -> u64 {
        self.servers.len() as u64
    }
}

impl Reading {
    /// The packets since `earlier`, without the question for them.
    pub(crate) fn packets_since(&self, earlier: &Self, meters: &Meters) -> Option<u64> {
        let packets = self.packets?.saturating_sub(earlier.packets?);
        Some(packets.saturating_sub(meters.questions()))
    }

    /// The cost of `ops` operations since `earlier`, as fields of the report.
    #[expect(clippy::cast_precision_loss, reason = "figures for people to read")]
    pub(crate) fn since(&self, earlier: &Self, meters: &Meters, ops: u64) -> Map<String, Value> {
        let elapsed = (self.at - earlier.at).as_secs_f64();
        let each = |later: Option<u64>, earlier: Option<u64>, ignoring: u64, decimals: f64| -> Value {
            let spent = later.zip(earlier).map(|(later, earlier)| (later - earlier).saturating_sub(ignoring));
            match spent {
                Some(spent) if ops > 0 => round(spent as f64 / ops as f64, decimals).into(),
                _ => Value::Null,
            }
        };
        let mut fields = Map::new();
        let mut field = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        field("ops", ops.into());
        field("elapsed_s", round(elapsed, 1000.0).into());
        field("ops_s", round(ops as f64 / elapsed, 10.0).into());
        field("reqs_op", each(self.packets, earlier.packets, meters.questions(), 1000.0));
        field("reads_op", each(self.reads, earlier.reads, 0, 1000.0));
        field("writes_op", each(self.writes, earlier.writes, 0, 1000.0));
        field("cli_cpu_us_op", each(Some(self.own_cpu), Some(earlier.own_cpu), 0, 10.0));
        field("srv_cpu_us_op", each(self.servers_cpu, earlier.servers_cpu, 0, 10.0));
        fields
    }
}

/// The memory of this process that is in use, in KiB.
pub(crate) fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn round(value: f64, decimals: f64) -> f64 {
    (value * decimals).round() / decimals
}

fn counter(report: &str, name: &str) -> Option<u64> {
    let mut lines = report.lines().filter_map(|line| line.split_once('\t'));
    lines.find(|(key, _)| *key == name)?.1.trim().parse().ok()
}

/// Processor time of this process, in microseconds.
fn own_cpu() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let part = |value: i64| u64::try_from(value).unwrap_or_default();
    part(time.tv_sec) * 1_000_000 + part(time.tv_nsec) / 1_000
}

/// Processor time of another process, in microseconds.
fn cpu_of(pid: u32) -> Option<u64> {
    ticks(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
        .map(|ticks| ticks * MICROSECONDS_PER_TICK)
}

/// User and system time in a line of `/proc/…/stat`. They are counted behind the name, which may hold any
/// character.
fn ticks(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_by_their_whole_name() {
        let report = "zk_packets_received\t12\nzk_cnt_updatelatency\t7\n";
        assert_eq!(counter(report, "zk_packets_received"), Some(12));
        assert_eq!(counter(report, "zk_packets"), None);
    }

    #[test]
    fn processor_time_is_read_behind_a_name_with_blanks() {
        let stat = "12 (a ) b) S 1 2 3 4 5 6 7 8 9 10 40 2 0 0 20 0 1 0";
        assert_eq!(ticks(stat), Some(42));
    }

    #[test]
    fn own_processor_time_and_memory_are_there() {
        assert!(own_cpu() > 0 && resident().is_some_and(|kibibytes| kibibytes > 0));
    }

    #[test]
    fn costs_are_for_each_operation_and_without_the_question_itself() {
        let meters = Meters { servers: vec!["127.0.0.1:1".parse().unwrap()], pids: Vec::new() };
        let reading = |packets| Reading {
            at: now(),
            packets: Some(packets),
            reads: None,
            writes: Some(packets / 2),
            own_cpu: packets * 10,
            servers_cpu: None,
        };
        let fields = reading(121).since(&reading(100), &meters, 10);
        assert_eq!((&fields["reqs_op"], &fields["writes_op"]), (&2.0.into(), &1.0.into()));
        assert_eq!((&fields["cli_cpu_us_op"], &fields["reads_op"]), (&21.0.into(), &Value::Null));
    }
}
