//! `deadlocks`: contenders of several processes that wait for each other.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::Args;
use lockkeeper::inspect::{Certainty, Deadlock, Deadlocks, Survey, WaitEdge};
use lockkeeper::znodes::Zxid;
use lockkeeper::{ConnectionManager, Error, ZnodePath};
use serde::Serialize;

use crate::connection::ConnectionOptions;
use crate::escape::to_text;
use crate::exit::{Exit, Failure};
use crate::inspect::json::Node;
use crate::inspect::print::{fence, name, now};
use crate::inspect::{Format, parse_path};
use crate::output::{say, warn};
use crate::partial::{NODES, partial_with_data};
use crate::{shell, span};

#[derive(Debug, Args)]
pub(crate) struct DeadlocksOptions {
    /// The path below which the locks are; / for everything
    root: String,

    /// The time between the two looks at a suspected deadlock
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = span::parse)]
    pause: Duration,

    /// The greatest number of nodes to read besides those of the contenders and empty directories
    #[arg(long, value_name = "N", default_value_t = NODES)]
    nodes: usize,

    /// Look again and again, and log each deadlock that begins or ends, until a signal ends the command
    #[arg(long)]
    watch: bool,

    /// How often to look, with --watch
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = span::interval)]
    interval: Duration,

    /// A report for people, or one line of JSON for each deadlock
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

pub(crate) async fn deadlocks(
    connection: &ConnectionOptions,
    options: DeadlocksOptions,
) -> Result<Exit, Failure> {
    let root = parse_path(&options.root)?;
    connection
        .with_session(async |manager| {
            if options.watch {
                return watch(manager, &root, &options).await;
            }
            let (survey, deadlocks) = look(manager, &root, &options).await?;
            let partial = partial_with_data(&survey, options.nodes);
            match options.output {
                Format::Json => {
                    deadlocks.all().iter().try_for_each(|deadlock| say(&json(deadlock)))?;
                    if let Some(why) = &partial {
                        warn(format_args!("PARTIAL: {why}"));
                    }
                }
                Format::Table if deadlocks.all().is_empty() => match &partial {
                    None => say(&format!("{}: no deadlock", summary(&survey)))?,
                    Some(why) => {
                        say(&format!("{}: no deadlock among them, PARTIAL: {why}", summary(&survey)))?
                    }
                },
                Format::Table => {
                    for deadlock in deadlocks.all() {
                        say(&format!("{}\n", report(deadlock, deadlocks.pause())))?;
                    }
                    if let Some(why) = &partial {
                        say(&format!("there may be others, PARTIAL: {why}"))?;
                    }
                }
            }
            Ok(match partial {
                _ if deadlocks.is_any_found() => Exit::NO,
                Some(_) => Exit::PARTIAL,
                None => Exit::SUCCESS,
            })
        })
        .await
}

async fn look(
    manager: &ConnectionManager,
    root: &ZnodePath,
    options: &DeadlocksOptions,
) -> Result<(Survey, Deadlocks), Error> {
    let survey = Survey::below_with(manager, root, options.nodes).await?;
    let deadlocks = Deadlocks::among(manager, survey.locks(), options.pause).await?;
    Ok((survey, deadlocks))
}

fn summary(survey: &Survey) -> String {
    let waits: usize = survey.locks().iter().map(|lock| lock.waiters().count()).sum();
    format!("{} locks, {waits} waits", survey.locks().len())
}

/// Logs until the process is ended. A look that fails is logged, too: the servers may be back for the next.
async fn watch(
    manager: &ConnectionManager,
    root: &ZnodePath,
    options: &DeadlocksOptions,
) -> Result<Exit, Failure> {
    let mut known: BTreeSet<Vec<Zxid>> = BTreeSet::new();
    let mut partial = None;
    let (mut found, mut possible) = (0_u64, 0_u64);
    loop {
        match look(manager, root, options).await {
            Ok((survey, deadlocks)) => {
                let why = partial_with_data(&survey, options.nodes);
                if why != partial {
                    let text = why
                        .as_deref()
                        .map_or_else(|| "all is seen again".to_owned(), |why| format!("PARTIAL: {why}"));
                    warn(format_args!("{} {text}", now()));
                    partial = why;
                }
                let mut seen = BTreeSet::new();
                for deadlock in deadlocks.all() {
                    let id = id(deadlock);
                    if !known.contains(&id) {
                        match deadlock.certainty() {
                            Certainty::Found => found += 1,
                            _ => possible += 1,
                        }
                        let text = match options.output {
                            Format::Json => json(deadlock),
                            Format::Table => format!("{} {}", now(), report(deadlock, deadlocks.pause())),
                        };
                        say(&text)?;
                    }
                    seen.insert(id);
                }
                let ended = known.difference(&seen).count();
                if seen != known && options.output == Format::Table {
                    let (now, summary) = (now(), summary(&survey));
                    say(&format!(
                        "{now} {summary}: {} deadlocks now, {ended} ended; \
                         {found} found and {possible} possible so far",
                        seen.len()
                    ))?;
                }
                known = seen;
            }
            Err(error) => warn(format_args!("{} {error}", now())),
        }
        tokio::time::sleep(options.interval).await;
    }
}

/// A deadlock is the same one as long as the same nodes wait.
fn id(deadlock: &Deadlock) -> Vec<Zxid> {
    let mut waiters: Vec<Zxid> = deadlock.edges().iter().map(|edge| edge.waiter().czxid()).collect();
    waiters.sort_unstable();
    waiters
}

/// The report, and how to end the deadlock: the mildest means first.
fn report(deadlock: &Deadlock, pause: Duration) -> String {
    let mut text = format!("{deadlock}\n  seen twice, {:.1} s apart", pause.as_secs_f64());
    let Some(edge) = deadlock.closed_by() else { return text };
    let Some(blocker) = edge.blockers().first() else { return text };
    let (path, node, who) = (edge.path().as_str(), blocker.czxid().to_string(), name(blocker));
    // Pasted as a whole line, what is behind the command is a comment.
    let revoke = shell::command(&["lockkeeper", "revoke", path, "--node", &node]);
    let release = shell::command(&["lockkeeper", "release", "--force", path, "--node", &node]);
    text.push_str("\n  to end it, the mildest first:");
    text.push_str(&format!("\n    {revoke}    # asks for a release"));
    text.push_str(&format!("\n    stop the process of {who}"));
    text.push_str(&format!("\n    {release}"));
    if let Some(fence) = fence([blocker]) {
        text.push_str(&format!("    # first {fence}"));
    }
    text
}

#[derive(Debug, Serialize)]
struct DeadlockLine {
    schema: u32,
    certainty: &'static str,
    edges: Vec<EdgeLine>,
    waiting_behind: Vec<BehindLine>,
    ends_by: Option<String>,
    advice: String,
}

#[derive(Debug, Serialize)]
struct EdgeLine {
    path: String,
    wanted: &'static str,
    waiter: Node,
    blockers: Vec<Node>,
    needs_all: bool,
}

#[derive(Debug, Serialize)]
struct BehindLine {
    path: String,
    waiters: u32,
}

fn json(deadlock: &Deadlock) -> String {
    let edge = |edge: &WaitEdge| EdgeLine {
        path: edge.path().to_string(),
        wanted: edge.wanted(),
        waiter: Node::of(edge.waiter(), None),
        blockers: edge.blockers().iter().map(|node| Node::of(node, None)).collect(),
        needs_all: edge.needs_all(),
    };
    let behind = deadlock.waiting_behind().iter();
    to_text(&DeadlockLine {
        schema: 1,
        certainty: if deadlock.certainty() == Certainty::Found { "found" } else { "possible" },
        edges: deadlock.edges().iter().map(edge).collect(),
        waiting_behind: behind
            .map(|(path, waiters)| BehindLine { path: path.to_string(), waiters: *waiters })
            .collect(),
        ends_by: deadlock.ends_by().map(|until| humantime::format_rfc3339_seconds(until).to_string()),
        advice: deadlock.advice(),
    })
}
