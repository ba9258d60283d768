//! `inspect`: the holders and the waiters of some paths.

pub(crate) mod clients;
pub(crate) mod cons;
pub(crate) mod held;
pub(crate) mod json;
pub(crate) mod print;

use std::time::Duration;

use clap::{Args, ValueEnum};
use lockkeeper::inspect::{ItemState, WorkQueueInspection};
use lockkeeper::znodes::Zxid;
use lockkeeper::{ConnectionManager, Inspection, ZnodePath};

use self::clients::Clients;
use self::held::{Holds, holds};
use crate::connection::ConnectionOptions;
use crate::exit::{Exit, Failure};
use crate::follow::Follow;
use crate::output::{say, warn};
use crate::span;

#[derive(Debug, Args)]
pub(crate) struct InspectOptions {
    /// The paths of locks, semaphores, elections, rate limiters or work queues
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<String>,

    /// A table for people, or one line of JSON for each path
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,

    /// Print a path again whenever its contenders change, until a signal ends the command
    #[arg(short, long, conflicts_with = "exit_code")]
    watch: bool,

    /// How long to wait at most for a change before the next look, with --watch
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = span::interval)]
    interval: Duration,

    /// End with 0 if every path is held, and with 1 if one of them is free
    #[arg(long)]
    exit_code: bool,

    /// Ask each server for the addresses of the clients (the four-letter word cons, where it is allowed)
    #[arg(long)]
    clients: bool,
}

/// The form of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    #[default]
    Table,
    Json,
}

/// A path, and what has it.
type Seen = (ZnodePath, AtPath);

/// The recipe at a path, as it was seen.
enum AtPath {
    Lock(Inspection, Holds),
    Queue(WorkQueueInspection),
    /// Nobody contends for it.
    Nobody,
}

pub(crate) async fn inspect(
    connection: &ConnectionOptions,
    options: InspectOptions,
) -> Result<Exit, Failure> {
    let paths = options.paths.iter().map(|path| parse_path(path)).collect::<Result<Vec<_>, _>>()?;
    connection
        .with_session(async |manager| {
            let clients = match options.clients {
                true => Some(Clients::ask(connection).await?),
                false => None,
            };
            let print = |path: &ZnodePath, at_path: &AtPath| {
                say(&text(path, at_path, options.output, clients.as_ref()))
            };
            if options.watch {
                return follow(manager, &paths, options.interval, print).await;
            }
            let seen = look(manager, &paths).await?;
            seen.iter().try_for_each(|(path, at_path)| print(path, at_path))?;
            let all_held = seen.iter().all(|(_, at_path)| at_path.is_held());
            Ok(if options.exit_code && !all_held { Exit::NO } else { Exit::SUCCESS })
        })
        .await
}

/// Prints each path, and again when its contenders change, until the process is ended. A look that fails is
/// printed, too: the servers may be back for the next one.
async fn follow(
    manager: &ConnectionManager,
    paths: &[ZnodePath],
    interval: Duration,
    print: impl Fn(&ZnodePath, &AtPath) -> Result<(), Failure>,
) -> Result<Exit, Failure> {
    let mut follow = Follow::paths(manager, paths)?;
    let mut before: Vec<Seen> = Vec::new();
    loop {
        match look(manager, paths).await {
            Ok(seen) => {
                for (index, (path, now)) in seen.iter().enumerate() {
                    if before.get(index).is_none_or(|(_, before)| is_changed(before, now)) {
                        print(path, now)?;
                    }
                }
                before = seen;
            }
            Err(failure) => warn(format_args!("{} {failure}", print::now())),
        }
        let is_free =
            |at: usize| before.get(at).is_some_and(|(_, at_path)| matches!(at_path, AtPath::Nobody));
        follow.changed(interval, is_free).await;
    }
}

/// Reads a path of the command line.
pub(crate) fn parse_path(path: &str) -> Result<ZnodePath, Failure> {
    path.parse().map_err(|error: lockkeeper::error::PathError| Failure::usage(error.to_string()))
}

async fn look(manager: &ConnectionManager, paths: &[ZnodePath]) -> Result<Vec<Seen>, Failure> {
    let mut seen = Vec::new();
    for path in paths {
        let at_path = match Inspection::of_path(manager, path).await? {
            Some(lock) => {
                let holds = holds(manager, &lock).await?;
                AtPath::Lock(lock, holds)
            }
            None => WorkQueueInspection::of_path(manager, path).await?.map_or(AtPath::Nobody, AtPath::Queue),
        };
        seen.push((path.clone(), at_path));
    }
    Ok(seen)
}

impl AtPath {
    /// Whether anybody holds the lock, or has an item of the queue.
    fn is_held(&self) -> bool {
        match self {
            Self::Lock(lock, _) => lock.holders().next().is_some(),
            Self::Queue(queue) => {
                queue.items.iter().any(|item| matches!(item.state, ItemState::Claimed { .. }))
            }
            Self::Nobody => false,
        }
    }
}

/// Whether other nodes contend, or a node has another role. The ages do not count.
fn is_changed(before: &AtPath, now: &AtPath) -> bool {
    let contenders = |lock: &Inspection| -> Vec<(Zxid, String, i32)> {
        lock.contenders()
            .iter()
            .map(|of| (of.czxid(), format!("{:?}", of.role()), of.stat().version))
            .collect()
    };
    match (before, now) {
        (AtPath::Lock(before, _), AtPath::Lock(now, _)) => contenders(before) != contenders(now),
        (AtPath::Queue(before), AtPath::Queue(now)) => before != now,
        (AtPath::Nobody, AtPath::Nobody) => false,
        _ => true,
    }
}

fn text(path: &ZnodePath, at_path: &AtPath, format: Format, clients: Option<&Clients>) -> String {
    match (format, at_path) {
        (Format::Json, AtPath::Lock(lock, holds)) => json::line(path, Some(lock), clients, holds),
        (Format::Json, AtPath::Queue(queue)) => json::queue_line(queue),
        (Format::Json, AtPath::Nobody) => json::line(path, None, clients, &Holds::new()),
        (Format::Table, AtPath::Nobody) => format!("{path}: free, 0 waiting"),
        (Format::Table, AtPath::Queue(queue)) => print::queue(queue),
        (Format::Table, AtPath::Lock(lock, holds)) => {
            let mut text = format!("{lock:#}");
            for (czxid, held) in holds {
                text.push_str(&format!("\n  [{czxid}] held for {held}"));
            }
            for client in clients.iter().flat_map(|clients| clients.of(lock)) {
                text.push_str(&format!("\n  {client}"));
            }
            text
        }
    }
}
