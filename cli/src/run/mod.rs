//! `lock`, `read`, `write`, `semaphore`, `multi`, `elect` and `once`: a program runs while the lock is held.
//!
//! 1. The supervisor is started, then the session is opened, then the lock is taken. A signal in between
//!    leaves the queue.
//! 2. The supervisor starts the program. It knows the end of the lease, which this process sends anew each
//!    time the servers have confirmed the session.
//! 3. Signals are passed on. The loss of the lock, and a request for it, are passed on.
//! 4. When the program and all its processes are gone, the lock is released.

mod grant;
mod held;
pub(crate) mod job;
mod nest;
mod once;
mod options;

use std::time::Duration;

use futures::future::join;
use lockkeeper::{ConnectionManager, Election, Error, Lock, LockGuard, MultiLock, Mutex, RwLock, Semaphore};

use self::grant::Grant;
use self::held::Held;
use self::nest::Nest;
pub(crate) use self::once::{OnceOptions, once};
pub(crate) use self::options::{ElectOptions, LockOptions, MultiOptions, RunOptions, SemaphoreOptions};
use crate::connection::ConnectionOptions;
use crate::exit::{Exit, Failure};
use crate::output::warn;
use crate::signals::Signals;
use crate::supervisor::Supervisor;

/// How long the session may take to close. The servers close it anyway, a session timeout later.
const CLOSING: Duration = Duration::from_secs(2);

/// What was got.
enum Granted {
    Run(Grant),
    /// There is nothing to run: it was done before.
    Done,
}

pub(crate) async fn lock(options: &LockOptions, connection: &ConnectionOptions) -> Result<Exit, Failure> {
    run(&options.run, connection, async |manager, nest| {
        let mutex = Mutex::new(manager, &options.path)?.with_node_data(nest.node_data(manager.node_data()));
        granted(&options.run, &mutex).await
    })
    .await
}

pub(crate) async fn read(options: &LockOptions, connection: &ConnectionOptions) -> Result<Exit, Failure> {
    run(&options.run, connection, async |manager, nest| {
        granted(&options.run, &rw_lock(options, manager, nest)?.reader()).await
    })
    .await
}

pub(crate) async fn write(options: &LockOptions, connection: &ConnectionOptions) -> Result<Exit, Failure> {
    run(&options.run, connection, async |manager, nest| {
        granted(&options.run, &rw_lock(options, manager, nest)?.writer()).await
    })
    .await
}

fn rw_lock(options: &LockOptions, manager: &ConnectionManager, nest: &Nest) -> Result<RwLock, Failure> {
    Ok(RwLock::new(manager, &options.path)?.with_node_data(nest.node_data(manager.node_data())))
}

pub(crate) async fn semaphore(
    options: &SemaphoreOptions,
    connection: &ConnectionOptions,
) -> Result<Exit, Failure> {
    run(&options.run, connection, async |manager, nest| {
        let semaphore = Semaphore::new(manager, &options.path, options.permits)?
            .with_node_data(nest.node_data(manager.node_data()));
        granted(&options.run, &semaphore.permits(options.take)).await
    })
    .await
}

pub(crate) async fn multi(options: &MultiOptions, connection: &ConnectionOptions) -> Result<Exit, Failure> {
    run(&options.run, connection, async |manager, nest| {
        let mut builder = MultiLock::builder();
        for path in &options.paths {
            let mutex = Mutex::new(manager, path)?.with_node_data(nest.node_data(manager.node_data()));
            builder = builder.lock(&mutex);
        }
        granted(&options.run, &builder.build()?).await
    })
    .await
}

pub(crate) async fn elect(options: &ElectOptions, connection: &ConnectionOptions) -> Result<Exit, Failure> {
    run(&options.run, connection, async |manager, _| {
        let default = || String::from_utf8_lossy(manager.node_data()).into_owned();
        let id = options.id.clone().unwrap_or_else(default);
        granted(&options.run, &Election::new(manager, &options.path, id)?).await
    })
    .await
}

/// Opens a session, waits for what `take` takes, and runs the program under it.
async fn run(
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
    let manager = tokio::select! {
        biased;
        signal = signals.next() => return Ok(Exit::of_signal(signal.as_raw())),
        connected = connection.connect_within(options.time_left()) => connected?,
    };
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

async fn granted(options: &RunOptions, lock: &dyn Lock) -> Result<Granted, Failure> {
    Ok(Granted::Run(Grant::Locks(wait(options, lock).await?)))
}

/// Waits for a lock, as long as the options say.
async fn wait(options: &RunOptions, lock: &dyn Lock) -> Result<LockGuard, Failure> {
    let acquired = if options.attempt {
        let free = lock.try_acquire().await?;
        return free.ok_or_else(|| not_in_time(options, format!("{} is not free", lock.path())));
    } else if let Some(timeout) = options.time_left() {
        lock.acquire_timeout(timeout).await
    } else {
        lock.acquire().await
    };
    acquired.map_err(|error| or_conflict(options, error))
}

/// The failure of a wait, with the chosen code if it was only too late.
fn or_conflict(options: &RunOptions, error: Error) -> Failure {
    let failure = Failure::from(error);
    if failure.exit() == Exit::NOT_IN_TIME { not_in_time(options, failure.to_string()) } else { failure }
}

/// With the code and the message that the options choose.
fn not_in_time(options: &RunOptions, message: String) -> Failure {
    let message = if options.quiet { String::new() } else { message };
    Failure::new(Exit::of_program(options.conflict_exit_code), message)
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
