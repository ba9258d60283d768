//! From the start of the supervisor to the start of the program.

use std::time::Duration;

use futures::future::join;
use lockkeeper::ConnectionManager;

use super::grant::Grant;
use super::held::Held;
use super::nest::Nest;
use super::options::RunOptions;
use crate::connection::{ConnectionOptions, Opened};
use crate::exit::{Exit, Failure};
use crate::four_letter_words::addresses;
use crate::output::warn;
use crate::signals::Signals;
use crate::supervisor::Supervisor;

/// How long the session may take to close. The servers close it anyway, a session timeout later.
const CLOSING: Duration = Duration::from_secs(2);

/// What was got.
pub(super) enum Granted {
    Run(Grant),
    /// There is nothing to run: it was done before.
    Done,
}

/// Opens a session, waits for what `take` takes, and runs the program under it.
pub(super) async fn run(
    options: &RunOptions,
    connection: &ConnectionOptions,
    take: impl AsyncFnOnce(&ConnectionManager, &Nest) -> Result<Granted, Failure>,
) -> Result<Exit, Failure> {
    // A wrong setting is found before anything is started.
    connection.check()?;
    let mut signals = Signals::listen()?;
    // It starts while the session is opened, and costs no time of its own.
    let supervisor = Supervisor::start(&options.program)
        .map_err(|error| Failure::new(Exit::INTERNAL, format!("the supervisor: {error}")))?;
    let manager = match connection.open(options.time_left(), &mut signals).await? {
        Opened::Session(manager) => manager,
        Opened::Signalled(exit) => return Ok(exit),
    };
    if !options.quiet {
        match connection.other_timeout(manager.session_timeout())? {
            Some(other) => warn(other),
            None => compare_tick(connection)?,
        }
    }
    // The question is sent ahead of the request that creates the chroot, and delays nothing.
    let warning = async {
        if let Ok(Some(missing)) = connection.missing_chroot(&manager).await {
            warn(format_args!("{missing} yet, and is created: check the end of --connect"));
        }
    };
    let take = async |manager: &ConnectionManager, nest: &Nest| join(warning, take(manager, nest)).await.1;
    let ended = run_with(options, &manager, take, signals, supervisor).await;
    // Closing the session deletes every node of it. Without a connection, the servers delete them later.
    let _ = manager.shutdown_within(CLOSING).await;
    ended
}

/// Warns if the servers have a longer `tickTime` than the setting, as soon as one tells it. Nothing waits
/// for that, so a program that ends at once ends without the warning.
fn compare_tick(connection: &ConnectionOptions) -> Result<(), Failure> {
    let settings = connection.with_file()?;
    let (words, servers) = (connection.words()?, addresses(settings.servers()?));
    let setting = settings.tick_time();
    tokio::spawn(async move {
        if let Some(tick) = words.tick_time(&servers).await.filter(|tick| *tick > setting) {
            warn(format_args!(
                "the servers have a tickTime of {tick:?}, and --tick-time is {setting:?}, which is too short \
                 to protect the program; give --tick-time {tick:?}"
            ));
        }
    });
    Ok(())
}

async fn run_with(
    options: &RunOptions,
    manager: &ConnectionManager,
    take: impl AsyncFnOnce(&ConnectionManager, &Nest) -> Result<Granted, Failure>,
    mut signals: Signals,
    supervisor: Supervisor,
) -> Result<Exit, Failure> {
    let grace = grace(options, manager.session_timeout())?;
    let nest = Nest::of_environment(&options.program);
    let owner = nest.owner();
    let granted = tokio::select! {
        biased;
        signal = signals.next() => return Ok(Exit::of_signal(signal.as_raw())),
        granted = owner.scope(take(manager, &nest)) => granted?,
    };
    match granted {
        Granted::Run(grant) => Held { grant, nest, supervisor, signals, options, grace }.run(manager).await,
        Granted::Done => Ok(Exit::SUCCESS),
    }
}

/// The grace that was asked for, or a quarter of the session timeout.
fn grace(options: &RunOptions, session_timeout: Duration) -> Result<Duration, Failure> {
    let max = session_timeout / 3;
    match options.grace {
        // Between two confirmations the lease has about two thirds of the session timeout left. A longer
        // grace would end every program at once.
        Some(grace) if grace > max => Err(Failure::usage(format!(
            "--grace is {grace:?}, and the session timeout {session_timeout:?}; \
             give at most {max:?}, or a longer --session-timeout",
        ))),
        Some(grace) => Ok(grace),
        None => Ok(session_timeout / 4),
    }
}
