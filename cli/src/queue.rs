//! `queue`: the items of a work queue, and the way back for failed ones.

use clap::{Args, Subcommand};
use lockkeeper::inspect::WorkQueueInspection;
use lockkeeper::{ConnectionManager, WorkQueue, ZnodePath};

use crate::connection::ConnectionOptions;
use crate::exit::{Exit, Failure};
use crate::inspect::{Format, json, parse_path, print};
use crate::output::say;

#[derive(Debug, Args)]
pub(crate) struct QueueOptions {
    #[command(subcommand)]
    command: QueueCommand,
}

#[derive(Debug, Subcommand)]
enum QueueCommand {
    /// Show the first hundred items in the order of work, and the first hundred that have failed
    List(ListOptions),
    /// Put failed items back to the end of the queue
    Requeue(RequeueOptions),
}

#[derive(Debug, Args)]
struct ListOptions {
    /// The path of the queue
    path: String,

    /// A table for people, or one line of JSON
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

#[derive(Debug, Args)]
struct RequeueOptions {
    /// The path of the queue
    path: String,

    /// The names of failed items, as list prints them
    #[arg(value_name = "ITEM", required_unless_present = "all")]
    items: Vec<String>,

    /// All items that have failed so far
    #[arg(long, conflicts_with = "items")]
    all: bool,
}

pub(crate) async fn queue(connection: &ConnectionOptions, options: QueueOptions) -> Result<Exit, Failure> {
    match options.command {
        QueueCommand::List(options) => list(connection, &options).await,
        QueueCommand::Requeue(options) => requeue(connection, &options).await,
    }
}

async fn list(connection: &ConnectionOptions, options: &ListOptions) -> Result<Exit, Failure> {
    let path = parse_path(&options.path)?;
    connection
        .with_session(async |manager| {
            let Some(seen) = look(manager, &path).await? else { return Ok(Exit::NO) };
            say(&match options.output {
                Format::Table => print::queue(&seen),
                Format::Json => json::queue_line(&seen),
            })?;
            Ok(Exit::SUCCESS)
        })
        .await
}

async fn requeue(connection: &ConnectionOptions, options: &RequeueOptions) -> Result<Exit, Failure> {
    let path = parse_path(&options.path)?;
    let named: Result<Vec<ZnodePath>, Failure> =
        options.items.iter().map(|item| parse_path(&format!("{path}/failed/{item}"))).collect();
    let named = named?;
    connection
        .with_session(async |manager| {
            let Some(seen) = look(manager, &path).await? else { return Ok(Exit::NO) };
            let queue = WorkQueue::<String>::new(manager, &path)?;
            let missing = match options.all {
                true => requeue_all(&queue, seen).await?,
                false => requeue_each(&queue, &named).await?,
            };
            Ok(if missing == 0 { Exit::SUCCESS } else { Exit::NO })
        })
        .await
}

/// Puts back what had failed when the command began: items may go on failing meanwhile. Returns the number of
/// those that another client has taken first.
async fn requeue_all(queue: &WorkQueue<String>, mut seen: WorkQueueInspection) -> Result<usize, Failure> {
    let mut left = usize::try_from(seen.failed_count).unwrap_or(usize::MAX);
    let mut missing = 0;
    if left == 0 {
        say("no item has failed")?;
    }
    while left > 0 && !seen.failed.is_empty() {
        let paths: Vec<ZnodePath> = seen.failed.iter().take(left).map(|item| item.path.clone()).collect();
        left -= paths.len();
        missing += requeue_each(queue, &paths).await?;
        if left > 0 {
            seen = queue.inspect().await?;
        }
    }
    Ok(missing)
}

/// Returns how many did not exist.
async fn requeue_each(queue: &WorkQueue<String>, paths: &[ZnodePath]) -> Result<usize, Failure> {
    let mut missing = 0;
    for path in paths {
        if queue.requeue(path).await? {
            say(&format!("requeued {}", path.name()))?;
        } else {
            say(&format!("{}: there is no such failed item", path.name()))?;
            missing += 1;
        }
    }
    Ok(missing)
}

/// The queue, or one line that says that there is none.
async fn look(manager: &ConnectionManager, path: &ZnodePath) -> Result<Option<WorkQueueInspection>, Failure> {
    let seen = WorkQueueInspection::of_path(manager, path).await?;
    if seen.is_none() {
        say(&format!("{path}: no work queue, or nothing was ever put into it"))?;
    }
    Ok(seen)
}
