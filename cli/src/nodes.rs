//! `get`, `ls` and `wait`: single nodes, as a shell script needs them.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use futures::{StreamExt, TryStreamExt, stream};
use humantime::format_rfc3339_seconds;
use lockkeeper::inspect::{Identity, Kind};
use lockkeeper::znodes::Stat;
use lockkeeper::{BootInstant, ConnectionManager, Error, Inspection, ZnodePath};
use lockkeeper_core::NodeName;

use crate::connection::ConnectionOptions;
use crate::escape::printable;
use crate::exit::{Exit, Failure};
use crate::inspect::parse_path;
use crate::inspect::print::{age, who};
use crate::output::{say, warn};
use crate::run::wait::{ANSWER, answers};
use crate::span;
use crate::width::{padded, width};

#[derive(Debug, Args)]
pub(crate) struct GetOptions {
    /// The path of the node, below the chroot of the connect string
    path: String,

    /// Print what the servers know about the node, instead of its data
    #[arg(long)]
    stat: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LsOptions {
    /// The path of the node, below the chroot of the connect string
    path: String,

    /// Also print the age of each node, the session that it ends with, and the beginning of its data: of a
    /// contender that is who it is, with its note
    #[arg(short, long)]
    long: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WaitOptions {
    /// The path of the lock, below the chroot of the connect string
    path: String,

    /// Wait at most this long for a server and the lock [default: without a limit]
    #[arg(long, value_name = "TIME", value_parser = span::parse)]
    timeout: Option<Duration>,
}

/// How many nodes are read at a time.
const IN_FLIGHT: usize = 64;

/// The pause before the next look, while no server answers.
const PAUSE: Duration = Duration::from_secs(1);

/// Prints the data of a node: the bytes as they are, unless a terminal would show them.
pub(crate) async fn get(connection: &ConnectionOptions, options: GetOptions) -> Result<Exit, Failure> {
    let path = parse_path(&options.path)?;
    connection
        .with_session(async |manager| {
            let Some((data, stat)) = manager.znodes().read(&path).await? else { return Ok(missing(&path)) };
            if options.stat {
                say(&stat_lines(&stat))?;
            } else if io::stdout().is_terminal() {
                say(&String::from_utf8_lossy(&data))?;
            } else {
                let mut out = io::stdout().lock();
                out.write_all(&data)?;
                out.flush()?;
            }
            Ok(Exit::SUCCESS)
        })
        .await
}

/// Prints the names of the children of a node, one a line, sorted.
pub(crate) async fn ls(connection: &ConnectionOptions, options: LsOptions) -> Result<Exit, Failure> {
    let path = parse_path(&options.path)?;
    connection
        .with_session(async |manager| {
            if options.long {
                let Some(rows) = rows(manager, &path).await? else { return Ok(missing(&path)) };
                table(&rows).iter().try_for_each(|line| say(line))?;
                return Ok(Exit::SUCCESS);
            }
            let Some(mut names) = manager.znodes().children(&path).await? else { return Ok(missing(&path)) };
            names.sort_unstable();
            names.iter().try_for_each(|name| say(&printable(name)))?;
            Ok(Exit::SUCCESS)
        })
        .await
}

/// The name of each child, its age, its session, and its data.
async fn rows(manager: &ConnectionManager, path: &ZnodePath) -> Result<Option<Vec<[String; 4]>>, Error> {
    let Some(mut names) = manager.znodes().children(path).await? else { return Ok(None) };
    names.sort_unstable();
    let row = async |name: String| match manager.znodes().read(path.child(&name)?).await {
        Ok(Some((data, stat))) => Ok(Some(row(&name, &stat, &Identity::read(&data).to_string()))),
        Ok(None) => Ok(None),
        Err(Error::Refused { .. }) => {
            let unknown = || "-".to_owned();
            Ok(Some([printable(&name), unknown(), unknown(), "(may not be read)".to_owned()]))
        }
        Err(error) => Err(error),
    };
    let rows = stream::iter(names).map(row).buffered(IN_FLIGHT);
    Ok(Some(rows.try_filter_map(async |row| Ok(row)).try_collect().await?))
}

fn row(name: &str, stat: &Stat, data: &str) -> [String; 4] {
    let since_begin = Duration::from_millis(u64::try_from(stat.ctime).unwrap_or_default());
    let old = SystemTime::now().duration_since(UNIX_EPOCH + since_begin).unwrap_or_default();
    let session = match stat.ephemeral_owner {
        0 => "-".to_owned(),
        session => format!("{session:#x}"),
    };
    [printable(name), age(old), session, data.to_owned()]
}

/// The columns below each other.
fn table(rows: &[[String; 4]]) -> Vec<String> {
    let widest = |column: usize| rows.iter().filter_map(|row| Some(width(row.get(column)?))).max();
    let widths: Vec<usize> = (0..4).filter_map(widest).collect();
    let line = |row: &[String; 4]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| padded(cell, *width));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// Returns once nobody holds the lock. Another contender may hold it directly afterwards.
pub(crate) async fn wait(connection: &ConnectionOptions, options: WaitOptions) -> Result<Exit, Failure> {
    let path = parse_path(&options.path)?;
    let began = BootInstant::now();
    connection
        .with_session_within(options.timeout, async |manager| {
            let waiting = until_free(manager, &path);
            let freed = match options.timeout {
                Some(timeout) => {
                    tokio::time::timeout(timeout.saturating_sub(BootInstant::now().since(began)), waiting)
                        .await
                }
                None => Ok(waiting.await),
            };
            match freed {
                Ok(freed) => freed.map(|()| Exit::SUCCESS),
                Err(_) => still_held(manager, &path).await,
            }
        })
        .await
}

/// Why the wait is over. What was seen before may be wrong once the link is dead.
async fn still_held(manager: &ConnectionManager, path: &ZnodePath) -> Result<Exit, Failure> {
    let shown = printable(path.as_str());
    if !answers(manager, path).await {
        let message = format!("no server answers any more, so nobody knows whether {shown} is still held");
        return Err(Failure::new(Exit::UNAVAILABLE, message));
    }
    let lock = tokio::time::timeout(ANSWER, Inspection::of_path(manager, path)).await;
    let lock = lock.ok().and_then(Result::ok);
    if lock.as_ref().is_some_and(|lock| lock.as_ref().is_none_or(|lock| lock.holders().next().is_none())) {
        return Ok(Exit::SUCCESS);
    }
    let who = lock.flatten().and_then(|lock| who(&lock));
    let who = who.map_or_else(String::new, |who| format!(": {who}"));
    Err(Failure::new(Exit::NOT_IN_TIME, format!("{shown} is still held{who}")))
}

/// A wait outlasts an outage of the servers, as the wait for a lock does.
async fn until_free(manager: &ConnectionManager, path: &ZnodePath) -> Result<(), Failure> {
    let mut has_warned = false;
    loop {
        match until_one_is_gone(manager, path).await {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(error) if error.is_transient() => {
                if !std::mem::replace(&mut has_warned, true) {
                    warn(format_args!("waiting for the servers: {error}"));
                }
                tokio::time::sleep(PAUSE).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Waits until the node of a holder does not exist any more. Returns whether there was one.
async fn until_one_is_gone(manager: &ConnectionManager, path: &ZnodePath) -> Result<bool, Error> {
    let lock = Inspection::of_path(manager, path).await?;
    let Some(holder) = lock.as_ref().and_then(|lock| lock.holders().next()) else { return Ok(false) };
    manager.znodes().deleted(holder.path()).await?;
    Ok(true)
}

/// Whether the name is that of a contender of a known kind.
pub(crate) fn is_contender(name: &str) -> bool {
    NodeName::parse(name).is_some_and(|name| name.kind() != Kind::OTHER)
}

fn missing(path: &ZnodePath) -> Exit {
    warn(format_args!("{} does not exist", printable(path.as_str())));
    Exit::NO
}

fn stat_lines(stat: &Stat) -> String {
    let owner = match stat.ephemeral_owner {
        0 => "none".to_owned(),
        session => format!("session {session:#x}"),
    };
    let time = |millis: i64| {
        let millis = Duration::from_millis(u64::try_from(millis).unwrap_or_default());
        format_rfc3339_seconds(UNIX_EPOCH + millis)
    };
    format!(
        "created   {}  {}\nwritten   {}  {}\nversion   {}\nowner     {owner}\nbytes     {}\nchildren  {}",
        time(stat.ctime),
        stat.czxid,
        time(stat.mtime),
        stat.mzxid,
        stat.version,
        stat.data_length,
        stat.children,
    )
}
