//! From the start of the supervisor to the start of the program.

use std::time::Duration;

use futures::future::join;
use lockkeeper::ConnectionManager;

use super::grant::Grant;
use super::held::Held;
use super::nest::Nest;
use super::options::RunOptions;
use super::tick_question::TickQuestion;
use crate::connection::{ConnectionOptions, Opened};
use crate::exit::{Exit, Failure};
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
    let nest = Nest::of_environment(&options.program);
    let mut tick = warn_of_servers(options, connection, &manager, &nest);
    // The question is sent ahead of the request that creates the chroot, and delays nothing.
    let warning = async {
        if let Ok(Some(missing)) = connection.missing_chroot(&manager).await {
            warn(format_args!("{missing} yet, and is created: check the end of --connect"));
        }
    };
    let take = async |manager: &ConnectionManager, nest: &Nest| join(warning, take(manager, nest)).await.1;
    let take = async |manager: &ConnectionManager, nest: &Nest| {
        let taken = take(manager, nest).await;
        if let Some(tick) = &mut tick {
            tick.warn_if_known().await;
        }
        taken
    };
    let ended = run_with(options, &manager, take, signals, supervisor, nest).await;
    // Closing the session deletes every node of it. Without a connection, the servers delete them later.
    let _ = manager.shutdown_within(CLOSING).await;
    if let Some(mut tick) = tick {
        tick.warn_soon().await;
    }
    ended
}

/// Says what the granted session timeout tells of the servers. If that does not show their tick, asks one of
/// them, unless the command around this one has asked.
fn warn_of_servers(
    options: &RunOptions,
    connection: &ConnectionOptions,
    manager: &ConnectionManager,
    nest: &Nest,
) -> Option<TickQuestion> {
    match connection.other_timeout(manager.session_timeout()).ok()? {
        Some(other) if other.is_unsafe => {
            warn(other.text);
            return None;
        }
        Some(other) if !options.quiet => warn(other.text),
        Some(_) | None => {}
    }
    // The servers may have limits of their own for a timeout, which tell nothing of their tick.
    if nest.is_within_another() { None } else { TickQuestion::ask(connection).ok() }
}

async fn run_with(
    options: &RunOptions,
    manager: &ConnectionManager,
    take: impl AsyncFnOnce(&ConnectionManager, &Nest) -> Result<Granted, Failure>,
    mut signals: Signals,
    supervisor: Supervisor,
    nest: Nest,
) -> Result<Exit, Failure> {
    let grace = grace(options, manager.session_timeout())?;
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
