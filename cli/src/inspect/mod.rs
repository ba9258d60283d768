//! `inspect`: the holders and the waiters of some paths.

pub(crate) mod clients;
pub(crate) mod json;
pub(crate) mod print;

use std::time::Duration;

use clap::{Args, ValueEnum};
use lockkeeper::znodes::Zxid;
use lockkeeper::{ConnectionManager, Inspection, ZnodePath};

use self::clients::Clients;
use crate::connection::ConnectionOptions;
use crate::exit::{Exit, Failure};
use crate::follow::Follow;
use crate::output::{say, warn};
use crate::span;

#[derive(Debug, Args)]
pub(crate) struct InspectOptions {
    /// The paths of locks, semaphores, elections or rate limiters
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

/// A path, and what has it. `None` if nobody contends for it.
type Seen = (ZnodePath, Option<Inspection>);

pub(crate) async fn inspect(
    connection: &ConnectionOptions,
    options: InspectOptions,
) -> Result<Exit, Failure> {
    let paths = options.paths.iter().map(|path| parse_path(path)).collect::<Result<Vec<_>, _>>()?;
    connection
        .with_session(async |manager| {
            let clients = match options.clients {
                true => Some(Clients::ask(connection.with_file()?.servers()?).await),
                false => None,
            };
            let print = |path: &ZnodePath, lock: Option<&Inspection>| {
                say(&text(path, lock, options.output, clients.as_ref()))
            };
            if options.watch {
                return follow(manager, &paths, options.interval, print).await;
            }
            let seen = look(manager, &paths).await?;
            seen.iter().try_for_each(|(path, lock)| print(path, lock.as_ref()))?;
            let is_held = |of: &Seen| of.1.as_ref().is_some_and(|lock| lock.holders().next().is_some());
            let all_held = seen.iter().all(is_held);
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
    print: impl Fn(&ZnodePath, Option<&Inspection>) -> Result<(), Failure>,
) -> Result<Exit, Failure> {
    let mut follow = Follow::paths(manager, paths)?;
    let mut before: Vec<Seen> = Vec::new();
    loop {
        match look(manager, paths).await {
            Ok(seen) => {
                for (index, (path, now)) in seen.iter().enumerate() {
                    if before.get(index).is_none_or(|(_, before)| is_changed(before.as_ref(), now.as_ref())) {
                        print(path, now.as_ref())?;
                    }
                }
                before = seen;
            }
            Err(failure) => warn(format_args!("{} {failure}", print::now())),
        }
        let is_free = |at: usize| before.get(at).is_some_and(|(_, lock)| lock.is_none());
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
        seen.push((path.clone(), Inspection::of_path(manager, path).await?));
    }
    Ok(seen)
}

/// Whether other nodes contend, or a node has another role. The ages do not count.
fn is_changed(before: Option<&Inspection>, now: Option<&Inspection>) -> bool {
    let contenders = |lock: Option<&Inspection>| -> Vec<(Zxid, String, i32)> {
        let all = lock.map(Inspection::contenders).unwrap_or_default();
        all.iter().map(|of| (of.czxid(), format!("{:?}", of.role()), of.stat().version)).collect()
    };
    contenders(before) != contenders(now)
}

fn text(path: &ZnodePath, lock: Option<&Inspection>, format: Format, clients: Option<&Clients>) -> String {
    match (format, lock) {
        (Format::Json, lock) => json::line(path, lock, clients),
        (Format::Table, None) => format!("{path}: free, 0 waiting"),
        (Format::Table, Some(lock)) => {
            let mut text = format!("{lock:#}");
            for client in clients.iter().flat_map(|clients| clients.of(lock)) {
                text.push_str(&format!("\n  {client}"));
            }
            text
        }
    }
}
