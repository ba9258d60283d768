//! `check`: locks whose nodes are too old, for a monitoring system.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use lockkeeper::Inspection;
use lockkeeper::inspect::{ContenderInfo, Survey};

use crate::connection::ConnectionOptions;
use crate::escape::printable;
use crate::exit::{Exit, Failure};
use crate::inspect::parse_path;
use crate::inspect::print::{age, name};
use crate::output::say;
use crate::partial::{NODES, partial};
use crate::span;

#[derive(Debug, Args)]
pub(crate) struct CheckOptions {
    /// The path below which to look; / for everything
    root: String,

    /// Report locks whose holder's node is older; it may have waited for a part of that time
    #[arg(long, value_name = "TIME", value_parser = span::parse)]
    holder_older: Option<Duration>,

    /// Report locks whose first waiter has waited for longer
    #[arg(long, value_name = "TIME", value_parser = span::parse)]
    waiter_older: Option<Duration>,

    /// Write the counts and the ages into this file as well, for the textfile collector of node_exporter
    #[arg(long, value_name = "FILE")]
    textfile: Option<PathBuf>,

    /// The greatest number of nodes to read besides those of the contenders and empty directories
    #[arg(long, value_name = "N", default_value_t = NODES)]
    nodes: usize,
}

pub(crate) async fn check(connection: &ConnectionOptions, options: CheckOptions) -> Result<Exit, Failure> {
    let root = parse_path(&options.root)?;
    connection
        .with_session(async |manager| {
            let survey = Survey::below_with(manager, &root, options.nodes).await?;
            let partial = partial(&survey, options.nodes);
            if let Some(file) = &options.textfile {
                let text = metrics(survey.locks(), partial.is_some(), SystemTime::now());
                replace(file, &text).map_err(|error| {
                    Failure::new(Exit::INTERNAL, format!("{} cannot be written: {error}", file.display()))
                })?;
            }
            let found: Vec<String> =
                survey.locks().iter().flat_map(|lock| findings(lock, &options)).collect();
            let seen = format!("{} locks below {}", survey.locks().len(), printable(root.as_str()));
            let verdict = match (found.len(), &partial) {
                (0, None) => format!("ok: {seen}"),
                (0, Some(why)) => format!("unknown: {seen}, PARTIAL: {why}"),
                (count, None) => format!("{count} too old: {seen}"),
                (count, Some(why)) => format!("{count} too old: {seen}, PARTIAL: {why}"),
            };
            // A monitoring system shows the first line.
            say(&verdict)?;
            found.iter().try_for_each(|finding| say(finding))?;
            Ok(match (found.is_empty(), partial) {
                (false, _) => Exit::BAD,
                (true, Some(_)) => Exit::PARTIAL,
                (true, None) => Exit::SUCCESS,
            })
        })
        .await
}

/// The candidates of an election lead, and stand by, for as long as they can.
fn has_deadline(lock: &Inspection) -> bool {
    lock.recipe() != "election"
}

fn oldest_holder(lock: &Inspection) -> Option<&ContenderInfo> {
    lock.holders().max_by_key(|holder| holder.age())
}

fn findings(lock: &Inspection, options: &CheckOptions) -> Vec<String> {
    let is_older = |of: &&ContenderInfo, limit: Option<Duration>| limit.is_some_and(|limit| of.age() > limit);
    let path = printable(lock.path().as_str());
    let line = |role: &str, of: &ContenderInfo| format!("{path}: {role} for {}: {}", age(of.age()), name(of));
    let holder = oldest_holder(lock).filter(|of| is_older(of, options.holder_older));
    let waiter = lock.waiters().next().filter(|of| is_older(of, options.waiter_older));
    let found = holder.map(|of| line("in the queue and holding", of)).into_iter();
    let found = found.chain(waiter.map(|of| line("waiting", of)));
    found.filter(|_| has_deadline(lock)).collect()
}

/// In the text format of Prometheus.
fn metrics(locks: &[Inspection], is_partial: bool, now: SystemTime) -> String {
    let seconds = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let mut text = String::new();
    let mut add = |name: &str, help: &str, value: &dyn Fn(&Inspection) -> Option<u64>| {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
        for lock in locks {
            if let Some(value) = value(lock) {
                let (path, recipe) = (label(lock.path().as_str()), lock.recipe());
                let _ = writeln!(text, "{name}{{path=\"{path}\",recipe=\"{recipe}\"}} {value}");
            }
        }
    };
    let count = |count: usize| u64::try_from(count).ok();
    add("lockkeeper_check_holders", "Holders of the lock", &|lock| count(lock.holders().count()));
    add("lockkeeper_check_waiters", "Waiters for the lock", &|lock| count(lock.waiters().count()));
    add("lockkeeper_check_holder_node_seconds", "Age of the oldest node of a holder", &|lock| {
        oldest_holder(lock).map(|of| of.age().as_secs())
    });
    add("lockkeeper_check_waiting_seconds", "Time for which the first waiter has waited", &|lock| {
        lock.waiters().next().map(|of| of.age().as_secs())
    });
    for (name, help, value) in [
        ("lockkeeper_check_partial", "1 if not all locks were seen", u64::from(is_partial)),
        ("lockkeeper_check_time_seconds", "The time of this look, in seconds since 1970", seconds),
    ] {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}");
    }
    text
}

fn label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// The collector reads all of the file or all of the earlier one.
fn replace(file: &Path, text: &str) -> std::io::Result<()> {
    let mut written = file.as_os_str().to_owned();
    written.push(format!(".{}", std::process::id()));
    let written = PathBuf::from(written);
    let replaced = fs::write(&written, text).and_then(|()| fs::rename(&written, file));
    if replaced.is_err() {
        // Whether or not it exists.
        let _ = fs::remove_file(&written);
    }
    replaced
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_quoted() {
        assert_eq!(label("/a\"b\\c\nd"), r#"/a\"b\\c\nd"#);
    }

    #[test]
    fn a_look_without_locks_says_when_it_was_and_whether_it_saw_all() {
        let text = metrics(&[], true, UNIX_EPOCH + Duration::from_secs(7));
        assert!(text.contains("\nlockkeeper_check_partial 1\n"), "{text}");
        assert!(text.ends_with("\nlockkeeper_check_time_seconds 7\n"), "{text}");
    }
}
