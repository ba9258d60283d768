//! `watch`: what happens at a path, line by line.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::Args;
use lockkeeper::inspect::{ContenderInfo, Kind, Role};
use lockkeeper::znodes::Zxid;
use lockkeeper::{BootInstant, Inspection};
use serde::Serialize;

use crate::connection::ConnectionOptions;
use crate::escape::to_text;
use crate::exit::{Exit, Failure};
use crate::follow::Follow;
use crate::inspect::json::Node;
use crate::inspect::print::{ASKED, age, name, now, token};
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
    /// It waited, and what became of it was not seen.
    Gone,
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
            let mut log = Log { format: options.output, ..Log::default() };
            loop {
                match Inspection::of_path(manager, &path).await {
                    Ok(lock) => log.look(lock.as_ref())?,
                    Err(error) => warn(format_args!("{} {error}", now())),
                }
                follow.changed(options.interval, |_| log.before.is_empty()).await;
            }
        })
        .await
}

/// What was seen.
#[derive(Debug, Default)]
struct Log {
    format: Format,
    before: Seen,
    /// A request to release overwrites the data that names the contender.
    names: BTreeMap<Zxid, String>,
    /// Since when each holder holds, and whether its grant was seen.
    held: BTreeMap<Zxid, (BootInstant, bool)>,
    has_looked: bool,
}

impl Log {
    /// Prints what has changed since the look before.
    fn look(&mut self, lock: Option<&Inspection>) -> Result<(), Failure> {
        let contenders = lock.into_iter().flat_map(Inspection::contenders).cloned();
        let seen: Seen = contenders.map(|of| (of.czxid(), of)).collect();
        for of in seen.values() {
            self.names.entry(of.czxid()).or_insert_with(|| name(of));
        }
        for (change, of) in changes(&self.before, &seen) {
            if change == Change::Holds {
                self.held.insert(of.czxid(), (BootInstant::now(), self.has_looked));
            }
            let who = self.names.get(&of.czxid()).map_or("", String::as_str);
            say(&line(change, of, who, self.held.get(&of.czxid()).copied(), self.format))?;
        }
        self.names.retain(|czxid, _| seen.contains_key(czxid));
        self.held.retain(|czxid, _| seen.contains_key(czxid));
        self.before = seen;
        self.has_looked = true;
        Ok(())
    }
}

/// In the order in which they must have happened: ends first, then grants, then arrivals.
fn changes<'a>(before: &'a Seen, now: &'a Seen) -> Vec<(Change, &'a ContenderInfo)> {
    let mut changes = Vec::new();
    for (_, of) in before.iter().filter(|(czxid, _)| !now.contains_key(czxid)) {
        // A permit has a node of its own, and the waiter's node goes when it has one.
        let has_moved = |other: &ContenderInfo| {
            is_holder(other) && !before.contains_key(&other.czxid()) && other.session() == of.session()
        };
        let change = match is_holder(of) {
            true => Change::Ended,
            false if now.values().any(has_moved) => continue,
            false if is_blocked(of, before, now) => Change::GaveUp,
            false => Change::Gone,
        };
        changes.push((change, of));
    }
    let became = |of: &ContenderInfo| change(before.get(&of.czxid()).map(State::of), State::of(of));
    let happened = now.values().flat_map(|of| became(of).into_iter().map(move |change| (change, of)));
    let (waits, others): (Vec<_>, Vec<_>) = happened.partition(|(change, _)| *change == Change::Waits);
    changes.extend(others);
    changes.extend(waits);
    changes
}

/// Whether a waiter of the look before was never granted: all that was ahead of it is there. Of a permit the
/// look does not show that, because others may be free.
fn is_blocked(waiter: &ContenderInfo, before: &Seen, now: &Seen) -> bool {
    let ahead = || before.values().filter(|of| is_holder(of) || of.czxid() < waiter.czxid());
    let has_blocker = ahead().any(|of| is_holder(of) && of.kind() != Some(Kind::LEASE));
    has_blocker && ahead().all(|of| now.contains_key(&of.czxid()))
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
        let is_asked = of.is_revoked() || of.identity().note().is_some_and(|note| note.ends_with(ASKED));
        Self { holds: is_holder(of), is_asked }
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
    /// For how long it was seen to hold, of a holder that ended.
    held_ms: Option<u64>,
    /// Whether it held before the first look.
    held_longer: Option<bool>,
}

fn line(
    change: Change,
    of: &ContenderInfo,
    who: &str,
    held: Option<(BootInstant, bool)>,
    format: Format,
) -> String {
    let said = match change {
        Change::Waits => "waits",
        Change::Holds => "holds",
        Change::IsAsked => "is asked to release",
        Change::GaveUp => "gave up",
        Change::Gone => "is gone",
        Change::Ended => "released or lost",
    };
    if format == Format::Json {
        let held = held.filter(|_| change == Change::Ended);
        let millis = |since: BootInstant| {
            u64::try_from(BootInstant::now().since(since).as_millis()).unwrap_or(u64::MAX)
        };
        let (held_ms, held_longer) = (held.map(|(since, _)| millis(since)), held.map(|(_, seen)| !seen));
        let node = Node::of(of, None);
        return to_text(&ChangeLine { schema: 1, time: now(), change: said, node, held_ms, held_longer });
    }
    let after = match change {
        Change::GaveUp | Change::Gone | Change::Ended => format!(" after {}", age(of.age())),
        _ => String::new(),
    };
    let held = match (change, held) {
        (Change::Ended, Some((since, is_exact))) => {
            format!(
                ", held for {}{}",
                if is_exact { "" } else { "at least " },
                age(BootInstant::now().since(since))
            )
        }
        _ => String::new(),
    };
    let token = match (change, token(of)) {
        (Change::Holds, Some(token)) => format!("  token {token}"),
        _ => String::new(),
    };
    format!("{}  {said}{after}{held}  {who}  [{}]{token}", now(), of.czxid())
}

#[cfg(test)]
mod tests {
    use lockkeeper::{ConnectionManager, Mutex, Semaphore};
    use lockkeeper_testserver::TestServer;

    use super::*;

    async fn seen(manager: &ConnectionManager, path: &str) -> Seen {
        let lock = Inspection::of_path(manager, path).await.unwrap();
        lock.iter().flat_map(Inspection::contenders).map(|of| (of.czxid(), of.clone())).collect()
    }

    fn kinds(before: &Seen, now: &Seen) -> Vec<Change> {
        changes(before, now).into_iter().map(|(change, _)| change).collect()
    }

    /// What happens between two looks is not seen: a waiter that is gone may have held.
    #[tokio::test]
    async fn a_waiter_gave_up_only_if_all_that_was_ahead_of_it_is_there() {
        let server = TestServer::start().await.unwrap();
        let manager = ConnectionManager::connect(&server.connect_string()).await.unwrap();
        let mutex = Mutex::new(&manager, "/watch/gone").unwrap();
        let held = mutex.acquire().await.unwrap();
        let alone = seen(&manager, "/watch/gone").await;
        let second = mutex.enqueue().await.unwrap();
        let two = seen(&manager, "/watch/gone").await;
        let third = mutex.enqueue().await.unwrap();
        let three = seen(&manager, "/watch/gone").await;
        drop((held, second, third));
        let none = Seen::new();
        assert_eq!(kinds(&two, &alone), [Change::GaveUp]);
        assert_eq!(kinds(&three, &two), [Change::GaveUp]);
        // The second may have made room for the third, or the other way round.
        assert_eq!(kinds(&three, &alone), [Change::GaveUp, Change::Gone]);
        assert_eq!(kinds(&two, &none), [Change::Ended, Change::Gone]);
        assert_eq!(kinds(&three, &none), [Change::Ended, Change::Gone, Change::Gone]);
    }

    #[tokio::test]
    async fn a_waiter_that_gets_a_permit_did_not_give_up() {
        let server = TestServer::start().await.unwrap();
        let manager = ConnectionManager::connect(&server.connect_string()).await.unwrap();
        let other = ConnectionManager::connect(&server.connect_string()).await.unwrap();
        let path = "/watch/permits";
        let held = Semaphore::new(&manager, path, 1).unwrap().acquire().await.unwrap();
        let mut waiting = Semaphore::new(&other, path, 1).unwrap().enqueue().await.unwrap();
        let before = seen(&manager, path).await;
        held.release().await.unwrap();
        let _held = waiting.wait().await.unwrap();
        let now = seen(&manager, path).await;
        assert_eq!(kinds(&before, &now), [Change::Ended, Change::Holds]);
        assert_eq!(kinds(&before, &Seen::new()), [Change::Ended, Change::Gone]);
    }

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
