//! The command `lockkeeper`.

// `tests/fuzz/src/main.rs` includes some of these files in a program of its own, and lists what they import.
mod act;
mod check;
mod completions;
mod connection;
mod connection_file;
mod deadlocks;
mod doctor;
mod escape;
mod exit;
mod follow;
mod four_letter_words;
#[cfg(test)]
mod fuzzing;
mod inspect;
mod log;
mod man;
mod nodes;
mod options;
mod output;
mod partial;
mod path_completion;
mod queue;
mod run;
#[cfg(feature = "tls")]
mod secure;
mod serve;
mod setting;
mod shell;
mod signals;
mod span;
mod supervisor;
mod top;
mod tree;
mod watch;
mod width;

use std::ffi::OsStr;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use crate::exit::{Exit, Failure};
use crate::options::{Command, Options};
use crate::supervisor::message;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let started_as = arguments.next();
    let started_as = started_as.as_deref().and_then(OsStr::to_str).unwrap_or_default();
    if [message::GUARD, message::SUPERVISE, message::EXEC].contains(&started_as) {
        log::start_within();
    }
    match started_as {
        message::GUARD => return supervisor::guard::main(arguments),
        message::SUPERVISE => return supervisor::main(arguments),
        message::EXEC => return supervisor::exec::main(arguments),
        path_completion::NAME => return path_completion::main(arguments),
        _ => {}
    }
    let ended = match Options::try_parse() {
        Ok(options) => {
            options.log.start(matches!(&options.command, Command::Top(options) if options.draws()));
            dispatch(options)
        }
        Err(error) => Ok(print_usage(&error)),
    };
    match ended {
        Ok(exit) => exit.into(),
        Err(failure) => {
            if !failure.is_quiet() {
                output::fail(&failure);
            }
            failure.exit().into()
        }
    }
}

/// clap's own exit code for a wrong usage is 2, which a program may have, too.
fn print_usage(error: &clap::Error) -> Exit {
    // Nothing is left to do if the output is closed.
    let _ = error.print();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Exit::SUCCESS,
        _ => Exit::USAGE,
    }
}

/// Runs the subcommand on a runtime of one thread.
fn dispatch(options: Options) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ended = runtime.block_on(subcommand(options));
    // A name that is being resolved, or an answer that nobody types, does not keep the process.
    runtime.shutdown_background();
    ended
}

async fn subcommand(options: Options) -> Result<Exit, Failure> {
    let Options { connection, command, log: _ } = options;
    match command {
        Command::Lock(options) => run::lock(&options, &connection).await,
        Command::Read(options) => run::read(&options, &connection).await,
        Command::Write(options) => run::write(&options, &connection).await,
        Command::Semaphore(options) => run::semaphore(&options, &connection).await,
        Command::Multi(options) => run::multi(&options, &connection).await,
        Command::Elect(options) => run::elect(&options, &connection).await,
        Command::Once(options) => run::once(&options, &connection).await,
        Command::Inspect(options) => inspect::inspect(&connection, options).await,
        Command::Tree(options) => tree::tree(&connection, options).await,
        Command::Top(options) => top::top(&connection, options).await,
        Command::Get(options) => nodes::get(&connection, options).await,
        Command::Ls(options) => nodes::ls(&connection, options).await,
        Command::Wait(options) => nodes::wait(&connection, options).await,
        Command::Check(options) => check::check(&connection, options).await,
        Command::Queue(options) => queue::queue(&connection, options).await,
        Command::Watch(options) => watch::watch(&connection, options).await,
        Command::Deadlocks(options) => deadlocks::deadlocks(&connection, options).await,
        Command::Revoke(options) => act::revoke(&connection, options).await,
        Command::Release(options) => act::release(&connection, options).await,
        Command::Doctor(options) => doctor::doctor(&options, &connection).await,
        Command::Serve(options) => serve::serve(&options).await,
        Command::Completions(options) => completions::completions(&options, Options::command()),
        Command::Man(options) => man::man(&options, Options::command()),
    }
}
