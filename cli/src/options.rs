//! The subcommands.

use clap::{Parser, Subcommand};

use crate::act::{ReleaseOptions, RevokeOptions};
use crate::check::CheckOptions;
use crate::completions::CompletionsOptions;
use crate::connection::ConnectionOptions;
use crate::deadlocks::DeadlocksOptions;
use crate::doctor::DoctorOptions;
use crate::inspect::InspectOptions;
use crate::log::LogOptions;
use crate::man::ManOptions;
use crate::nodes::{GetOptions, LsOptions, WaitOptions};
use crate::queue::QueueOptions;
use crate::run::{ElectOptions, LockOptions, MultiOptions, OnceOptions, SemaphoreOptions};
use crate::serve::ServeOptions;
use crate::top::TopOptions;
use crate::tree::TreeOptions;
use crate::watch::WatchOptions;

/// Runs programs under locks on Apache ZooKeeper, and shows who holds and who waits.
///
/// Exit codes: those of the program that was run, 128 and the number of the signal that ended it, and 64
/// wrong usage, 69 no server, 70 the command itself failed, 75 not got in time, 77 refused by the servers, 79
/// the lock was lost.
#[derive(Debug, Parser)]
#[command(name = "lockkeeper", version, max_term_width = 100)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) connection: ConnectionOptions,

    #[command(flatten)]
    pub(crate) log: LogOptions,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a program while a mutex is held
    Lock(LockOptions),
    /// Run a program while the reading side of a read/write lock is held
    Read(LockOptions),
    /// Run a program while the writing side of a read/write lock is held
    Write(LockOptions),
    /// Run a program while permits of a semaphore are held
    Semaphore(SemaphoreOptions),
    /// Run a program while several mutexes are held
    Multi(MultiOptions),
    /// Run a program while this candidate leads
    Elect(ElectOptions),
    /// Run a program once for ever, or once per interval, over all machines
    #[command(mut_arg("program", |program| program.required(false)))]
    Once(OnceOptions),
    /// Show the holders and the waiters of some paths
    Inspect(InspectOptions),
    /// Show every lock, election, group and work queue below a root
    Tree(TreeOptions),
    /// Show the locks below a root on a live screen
    Top(TopOptions),
    /// Report locks that are held or waited for too long, for a monitoring system
    ///
    /// Exit code: 0 none, 2 at least one, 3 none as far as was seen.
    Check(CheckOptions),
    /// Show the items of a work queue, or put failed ones back
    Queue(QueueOptions),
    /// Print what happens at a path, line by line
    Watch(WatchOptions),
    /// Wait until nobody holds a lock
    Wait(WaitOptions),
    /// Print the data of a node
    Get(GetOptions),
    /// Print the names of the children of a node
    Ls(LsOptions),
    /// Find contenders that wait for each other, in whatever processes
    Deadlocks(DeadlocksOptions),
    /// Ask the holders of a lock to release it
    Revoke(RevokeOptions),
    /// Take a lock away from its holders, by force
    Release(ReleaseOptions),
    /// Examine the servers, a session and the locks: one line for each finding, and what to do about it
    ///
    /// Exit code by the worst finding: 0 ok, 1 warn, 2 bad.
    Doctor(DoctorOptions),
    /// Run a server for development; not for production
    Serve(ServeOptions),
    /// Print the completions of a shell
    Completions(CompletionsOptions),
    /// Write the manual pages
    Man(ManOptions),
}
