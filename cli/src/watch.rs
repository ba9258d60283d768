//! `watch`: what happens at a path, line by line.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::Args;
use lockkeeper::Inspection;
use lockkeeper::inspect::{ContenderInfo, Role};
use lockkeeper::znodes::Zxid;
use serde::Serialize;

use crate::connection::ConnectionOptions;
use crate::exit::{Exit, Failure};
use crate::follow::Follow;
use crate::inspect::json::{Node, to_text};
use crate::inspect::print::{age, name, now, token};
use crate::inspect::{Format, parse_path};
use crate::output::{say, warn};
use crate::span;

#[derive(Debug, Args)]
pub(crate) struct WatchOptions {
    /// The path of the lock
    path: String,

    /// How long to wait at most for a change before the next look
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = span::interval)]
    interval: Duration,

    /// A line for people, or a line of JSON
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

/// The nodes of one look, by the transactions that created them.
type Seen = BTreeMap<Zxid, ContenderInfo>;

/// What happened to one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Waits,
    Holds,
    IsAsked,
    GaveUp,
    Ended,
}

/// Prints until the process is ended. A look that fails is printed, too.
///
/// A view says when to look. What begins and ends before the look after it is not seen.
pub(crate) async fn watch(connection: &ConnectionOptions, options: WatchOptions) -> Result<Exit, Failure> {
    let path = parse_path(&options.path)?;
    connection
        .with_session(async |manager| {
            let mut follow = Follow::paths(manager, std::slice::from_ref(&path))?;
            let mut before = Seen::new();
            // A request to release overwrites the data that names the contender.
            let mut names: BTreeMap<Zxid, String> = BTreeMap::new();
            loop {
                match Inspection::of_path(manager, &path).await {
                    Ok(lock) => {
                        let contenders = lock.iter().flat_map(Inspection::contenders).cloned();
                        let seen: Seen = contenders.map(|of| (of.czxid(), of)).collect();
                        for of in seen.values() {
                            names.entry(of.czxid()).or_insert_with(|| name(of));
                        }
                        for (change, of) in changes(&before, &seen) {
                            let who = names.get(&of.czxid()).map_or("", String::as_str);
                            say(&line(change, of, who, options.output))?;
                        }
                        names.retain(|czxid, _| seen.contains_key(czxid));
                        before = seen;
                    }
                    Err(error) => warn(format_args!("{} {error}", now())),
                }
                follow.changed(options.interval, |_| before.is_empty()).await;
            }
        })
        .await
}

/// In the order in which they must have happened: ends first, then grants, then arrivals.
fn changes<'a>(before: &'a Seen, now: &'a Seen) -> Vec<(Change, &'a ContenderInfo)> {
    let mut changes = Vec::new();
    for (_, of) in before.iter().filter(|(czxid, _)| !now.contains_key(czxid)) {
        changes.push((if is_holder(of) { Change::Ended } else { Change::GaveUp }, of));
    }
    let became = |of: &ContenderInfo| change(before.get(&of.czxid()).map(State::of), State::of(of));
    let happened = now.values().flat_map(|of| became(of).into_iter().map(move |change| (change, of)));
    let (waits, others): (Vec<_>, Vec<_>) = happened.partition(|(change, _)| *change == Change::Waits);
    changes.extend(others);
    changes.extend(waits);
    changes
}

fn is_holder(of: &ContenderInfo) -> bool {
    matches!(of.role(), Role::Holder | Role::Recipe(_))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    holds: bool,
    is_asked: bool,
}

impl State {
    fn of(of: &ContenderInfo) -> Self {
        Self { holds: is_holder(of), is_asked: of.is_revoked() }
    }
}

fn change(before: Option<State>, now: State) -> Vec<Change> {
    let mut changes = Vec::new();
    match (before, now.holds) {
        (None, false) => changes.push(Change::Waits),
        (None | Some(State { holds: false, .. }), true) => changes.push(Change::Holds),
        _ => {}
    }
    if now.is_asked && !before.is_some_and(|before| before.is_asked) {
        changes.push(Change::IsAsked);
    }
    changes
}

#[derive(Debug, Serialize)]
struct ChangeLine {
    schema: u32,
    time: String,
    change: &'static str,
    node: Node,
}

fn line(change: Change, of: &ContenderInfo, who: &str, format: Format) -> String {
    let said = match change {
        Change::Waits => "waits",
        Change::Holds => "holds",
        Change::IsAsked => "is asked to release",
        Change::GaveUp => "gave up",
        Change::Ended => "released or lost",
    };
    if format == Format::Json {
        return to_text(&ChangeLine { schema: 1, time: now(), change: said, node: Node::of(of, None) });
    }
    let after = match change {
        Change::GaveUp | Change::Ended => format!(" after {}", age(of.age())),
        _ => String::new(),
    };
    let token = match (change, token(of)) {
        (Change::Holds, Some(token)) => format!("  token {token}"),
        _ => String::new(),
    };
    format!("{}  {said}{after}  {who}  [{}]{token}", now(), of.czxid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_arrives_is_granted_and_asked_once_each() {
        let state = |holds, is_asked| State { holds, is_asked };
        assert_eq!(change(None, state(false, false)), [Change::Waits]);
        assert_eq!(change(None, state(true, false)), [Change::Holds]);
        assert_eq!(change(Some(state(false, false)), state(true, false)), [Change::Holds]);
        assert_eq!(change(Some(state(true, false)), state(true, true)), [Change::IsAsked]);
        assert_eq!(change(Some(state(true, true)), state(true, true)), []);
    }
}
