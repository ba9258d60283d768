//! A railway ticket office: several processes sell the seats of the same trains at once, and no seat is sold twice.
//!
//! `cargo run --example ticket_office` sells a sample of 2,000 orders; `-- --help` tells what else it can do. Read it
//! in this order:
//!
//! * `sale`: how one order is served under the mutex of its train. This is what lockkeeper is for.
//! * `ledger`: what stands in ZooKeeper, and where.
//! * `seller`: a process that sells, with a session of its own and several tasks.
//! * `office`: the process that hires sellers, hands out orders, and takes up what a dead seller left.
//! * `audit`: whether it came out right, told from ZooKeeper alone.

mod audit;
mod connection;
mod hired;
mod interrupt;
mod ledger;
mod messages;
mod office;
mod options;
mod orders;
mod patience;
mod progress;
mod report;
mod run;
mod sale;
mod seller;
mod server;

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use tokio::runtime::Builder;

use self::options::Options;

/// Runs the office, or one of its sellers, as the command line says.
#[must_use]
pub fn main() -> ExitCode {
    let options = Options::parse();
    let runtime = match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error),
    };
    let code = match options.seller {
        Some(_) => runtime.block_on(seller::work()).map(|()| ExitCode::SUCCESS).map_err(Into::into),
        None => runtime.block_on(run::run(&options)).map_err(Into::into),
    };
    // A read of standard input that no one waits for any more must not keep the process.
    runtime.shutdown_timeout(Duration::from_millis(100));
    code.unwrap_or_else(|error: Box<dyn Error>| failed(&*error))
}

/// Says what went wrong, and what to do about it if that is known.
fn failed(error: &(dyn Error + 'static)) -> ExitCode {
    eprintln!("ticket_office: {error}");
    ExitCode::from(error.downcast_ref::<run::RunError>().map_or(run::TROUBLE, run::RunError::code))
}
