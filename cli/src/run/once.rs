//! `once`: a program runs once for ever, or once per interval, over all machines.
//!
//! Without an interval the layout is that of [`OnceCell`](lockkeeper::OnceCell): a mutex at `<path>/locks`,
//! and the node `<path>/value`, which is made by a transaction under the mutex when the program has
//! succeeded. With an interval it is a [`Schedule`](lockkeeper::Schedule).

use std::time::{Duration, UNIX_EPOCH};

use clap::Args;
use humantime::format_rfc3339_seconds;
use lockkeeper::inspect::Identity;
use lockkeeper::schedule::Missed;
use lockkeeper::{ConnectionManager, Error, Mutex, OnceCell, Schedule, ZnodePath};

use super::grant::Grant;
use super::options::RunOptions;
use super::start::{Granted, run};
use super::wait::{not_in_time, or_conflict, wait};
use crate::connection::{ConnectionOptions, within};
use crate::exit::{Exit, Failure};
use crate::inspect::parse_path;
use crate::output::say;
use crate::span;

#[derive(Debug, Args)]
pub(crate) struct OnceOptions {
    /// The path of the record, below the chroot of the connect string
    path: String,

    /// Once in each interval of this length [default: once for ever]
    #[arg(long, value_name = "TIME", value_parser = span::parse)]
    every: Option<Duration>,

    /// When the intervals begin: this long after midnight UTC, for a day, or after whole intervals since 1970
    #[arg(long, value_name = "TIME", value_parser = span::parse, requires = "every")]
    offset: Option<Duration>,

    /// Also run for each interval in which no machine ran the program [default: only for the newest one]
    #[arg(long, requires = "every")]
    catch_up: bool,

    /// Do not run the program: print when it has succeeded, and in which process. Exit code 1 if it has not
    #[arg(long, conflicts_with_all = ["program", "reset"])]
    show: bool,

    /// Do not run the program: delete the record that it was done, so that the next command runs it again
    #[arg(long, conflicts_with_all = ["program", "every"])]
    reset: bool,

    #[command(flatten)]
    run: RunOptions,
}

pub(crate) async fn once(options: &OnceOptions, connection: &ConnectionOptions) -> Result<Exit, Failure> {
    let path = parse_path(&options.path)?;
    if options.show || options.reset {
        let work = async |manager: &ConnectionManager| {
            let limit = options.run.time_left();
            match options.reset {
                // The record may be deleted although no answer comes in time, so this has the limit of the
                // manager, and says what is known.
                true => reset(manager, &path).await,
                false => within(limit, show(manager, &path, options)).await,
            }
        };
        return connection.with_session_within(options.run.time_left(), work).await;
    }
    if options.run.program.is_empty() {
        return Err(Failure::usage("name the program to run behind --, or give --show or --reset"));
    }
    run(&options.run, connection, async |manager, _| match options.every {
        Some(interval) => slot(options, manager, interval).await,
        None => for_ever(options, manager).await,
    })
    .await
}

async fn slot(
    options: &OnceOptions,
    manager: &ConnectionManager,
    interval: Duration,
) -> Result<Granted, Failure> {
    let missed = if options.catch_up { Missed::CatchUp } else { Missed::Skip };
    let schedule = Schedule::new(manager, &options.path, interval)?
        .with_node_data(options.run.with_note(manager.node_data()))
        .with_offset(options.offset.unwrap_or_default())
        .with_missed(missed);
    let due = if options.run.attempt {
        let due = schedule.try_due().await?;
        return due
            .map(|slot| Granted::Run(Grant::Slot(Box::new(slot))))
            .ok_or_else(|| not_in_time(&options.run, format!("no slot of {} is due", options.path)));
    } else if let Some(timeout) = options.run.time_left() {
        schedule.due_timeout(timeout).await
    } else {
        schedule.due().await
    };
    match due {
        Ok(slot) => Ok(Granted::Run(Grant::Slot(Box::new(slot)))),
        Err(error) => Err(or_conflict(&options.run, manager, &parse_path(&options.path)?, error).await),
    }
}

async fn for_ever(options: &OnceOptions, manager: &ConnectionManager) -> Result<Granted, Failure> {
    let path = parse_path(&options.path)?;
    // A cell refuses the root, where the nodes would be among those of all other programs.
    OnceCell::new(manager, &path)?;
    let data = options.run.with_note(manager.node_data());
    let mutex = Mutex::new(manager, format!("{path}/locks"))?.with_node_data(data);
    let marker = marker(&path);
    if is_done(manager, &marker).await? {
        return Ok(Granted::Done);
    }
    let guard = wait(&options.run, manager, &mutex, &[mutex.path().clone()]).await?;
    // Another machine may have run the program while this one waited.
    if is_done(manager, &marker).await? {
        Grant::Locks(guard).end(false).await?;
        return Ok(Granted::Done);
    }
    Ok(Granted::Run(Grant::Once(guard, marker)))
}

/// Prints the record of the newest run that succeeded.
async fn show(manager: &ConnectionManager, path: &ZnodePath, options: &OnceOptions) -> Result<Exit, Failure> {
    let shown = match options.every {
        Some(interval) => {
            let schedule = Schedule::new(manager, path, interval)?;
            let schedule = schedule.with_offset(options.offset.unwrap_or_default());
            let seen = schedule.inspect().await?;
            seen.last().map(|last| {
                let (slot, done) =
                    (format_rfc3339_seconds(last.slot()), format_rfc3339_seconds(last.done_at()));
                format!("done for the interval of {slot} at {done} by {}", last.by())
            })
        }
        None => manager.znodes().read(marker(path)).await?.map(|(data, stat)| {
            let done = UNIX_EPOCH + Duration::from_millis(u64::try_from(stat.ctime).unwrap_or_default());
            // A cell of a program has a value instead of a name.
            let by = Identity::read(&data);
            let by = by.host().map_or_else(String::new, |_| format!(" by {by}"));
            format!("done at {}{by}", format_rfc3339_seconds(done))
        }),
    };
    say(shown.as_deref().unwrap_or("not done yet"))?;
    Ok(if shown.is_some() { Exit::SUCCESS } else { Exit::NO })
}

async fn reset(manager: &ConnectionManager, path: &ZnodePath) -> Result<Exit, Failure> {
    let was_done = manager.znodes().delete(marker(path)).await?;
    say(if was_done { "forgotten: the next command runs the program" } else { "not done yet" })?;
    Ok(if was_done { Exit::SUCCESS } else { Exit::NO })
}

fn marker(path: &ZnodePath) -> String {
    format!("{path}/value")
}

async fn is_done(manager: &ConnectionManager, marker: &str) -> Result<bool, Error> {
    Ok(manager.znodes().read(marker).await?.is_some())
}
