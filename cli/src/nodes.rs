//! `get`, `ls` and `wait`: single nodes, as a shell script needs them.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use clap::Args;
use humantime::format_rfc3339_seconds;
use lockkeeper::znodes::Stat;
use lockkeeper::{BootInstant, ConnectionManager, Error, Inspection, ZnodePath};

use crate::connection::ConnectionOptions;
use crate::escape::printable;
use crate::exit::{Exit, Failure};
use crate::inspect::parse_path;
use crate::output::{say, warn};
use crate::span;

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
}

#[derive(Debug, Args)]
pub(crate) struct WaitOptions {
    /// The path of the lock, below the chroot of the connect string
    path: String,

    /// Wait at most this long for a server and the lock [default: without a limit]
    #[arg(long, value_name = "TIME", value_parser = span::parse)]
    timeout: Option<Duration>,
}

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
            let Some(mut names) = manager.znodes().children(&path).await? else { return Ok(missing(&path)) };
            names.sort_unstable();
            names.iter().try_for_each(|name| say(&printable(name)))?;
            Ok(Exit::SUCCESS)
        })
        .await
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
                Err(_) => {
                    warn(format_args!("{} is still held", printable(path.as_str())));
                    Ok(Exit::NOT_IN_TIME)
                }
            }
        })
        .await
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
        format_rfc3339_seconds(std::time::UNIX_EPOCH + millis)
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
