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
pub(crate) mod requests;
mod start;
mod tick_question;
pub(crate) mod wait;

use lockkeeper::locks::ZooKeeperLock;
use lockkeeper::{ConnectionManager, Election, MultiLock, Mutex, RwLock, Semaphore, ZnodePath};

use self::grant::Grant;
use self::nest::Nest;
pub(crate) use self::once::{OnceOptions, once};
pub(crate) use self::options::{ElectOptions, LockOptions, MultiOptions, RunOptions, SemaphoreOptions};
use self::start::{Granted, run};
use self::wait::wait;
use crate::connection::ConnectionOptions;
use crate::exit::{Exit, Failure};
use crate::inspect::parse_path;

pub(crate) async fn lock(options: &LockOptions, connection: &ConnectionOptions) -> Result<Exit, Failure> {
    parse_path(&options.path)?;
    run(&options.run, connection, async |manager, nest| {
        let mutex = Mutex::new(manager, &options.path)?.with_node_data(data(&options.run, manager, nest));
        granted(&options.run, manager, &mutex).await
    })
    .await
}

pub(crate) async fn read(options: &LockOptions, connection: &ConnectionOptions) -> Result<Exit, Failure> {
    parse_path(&options.path)?;
    run(&options.run, connection, async |manager, nest| {
        granted(&options.run, manager, &rw_lock(options, manager, nest)?.reader()).await
    })
    .await
}

pub(crate) async fn write(options: &LockOptions, connection: &ConnectionOptions) -> Result<Exit, Failure> {
    parse_path(&options.path)?;
    run(&options.run, connection, async |manager, nest| {
        granted(&options.run, manager, &rw_lock(options, manager, nest)?.writer()).await
    })
    .await
}

fn rw_lock(options: &LockOptions, manager: &ConnectionManager, nest: &Nest) -> Result<RwLock, Failure> {
    Ok(RwLock::new(manager, &options.path)?.with_node_data(data(&options.run, manager, nest)))
}

pub(crate) async fn semaphore(
    options: &SemaphoreOptions,
    connection: &ConnectionOptions,
) -> Result<Exit, Failure> {
    parse_path(&options.path)?;
    run(&options.run, connection, async |manager, nest| {
        let semaphore = Semaphore::new(manager, &options.path, options.permits)?.with_node_data(data(
            &options.run,
            manager,
            nest,
        ));
        granted(&options.run, manager, &semaphore.permits(options.take)).await
    })
    .await
}

pub(crate) async fn multi(options: &MultiOptions, connection: &ConnectionOptions) -> Result<Exit, Failure> {
    options.paths.iter().try_for_each(|path| parse_path(path).map(drop))?;
    run(&options.run, connection, async |manager, nest| {
        let mut builder = MultiLock::builder();
        for path in &options.paths {
            let mutex = Mutex::new(manager, path)?.with_node_data(data(&options.run, manager, nest));
            builder = builder.lock(&mutex);
        }
        let locks = builder.build()?;
        let paths: Vec<ZnodePath> = locks.paths().cloned().collect();
        Ok(Granted::Run(Grant::Locks(wait(&options.run, manager, &locks, &paths).await?)))
    })
    .await
}

pub(crate) async fn elect(options: &ElectOptions, connection: &ConnectionOptions) -> Result<Exit, Failure> {
    parse_path(&options.path)?;
    run(&options.run, connection, async |manager, _| {
        let default = || String::from_utf8_lossy(&options.run.with_note(manager.node_data())).into_owned();
        let id = options.id.clone().unwrap_or_else(default);
        granted(&options.run, manager, &Election::new(manager, &options.path, id)?).await
    })
    .await
}

/// What the nodes of a lock say of this command.
fn data(options: &RunOptions, manager: &ConnectionManager, nest: &Nest) -> Vec<u8> {
    nest.node_data(&options.with_note(manager.node_data()))
}

async fn granted(
    options: &RunOptions,
    manager: &ConnectionManager,
    lock: &dyn ZooKeeperLock,
) -> Result<Granted, Failure> {
    let paths = [lock.path().clone()];
    Ok(Granted::Run(Grant::Locks(wait(options, manager, lock, &paths).await?)))
}
