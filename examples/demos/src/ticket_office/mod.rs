//! A railway ticket office: several processes sell the seats of the same trains at once, and no seat is sold
//! twice.
//!
//! `cargo run --example ticket_office` sells a sample of 2,000 orders; `-- --help` lists its options. Read it
//! in this order:
//!
//! * `sale`: how one order is served under the mutex of its train. This is what lockkeeper is for.
//! * `ledger`: the nodes in ZooKeeper.
//! * `seller`: a process that sells, with a session of its own and several tasks.
//! * `office`: the process that hires sellers, hands out orders, and takes up what a dead seller left.
//! * `audit`: the check of the result, by ZooKeeper alone.

mod audit;
mod hired;
mod ledger;
mod messages;
mod office;
mod options;
mod orders;
mod progress;
mod report;
mod run;
mod sale;
mod seller;

use std::error::Error;
use std::process::ExitCode;

use clap::Parser;

use self::options::Options;
use crate::fixture::{TROUBLE, block_on};

/// Runs the office, or one of its sellers, as the command line says.
#[must_use]
pub fn main() -> ExitCode {
    let options = Options::parse();
    let code = block_on(async {
        match options.common.process {
            Some(_) => seller::work().await.map(|()| ExitCode::SUCCESS).map_err(Box::<dyn Error>::from),
            None => run::run(&options).await.map_err(Into::into),
        }
    });
    code.map_err(Into::into).flatten().unwrap_or_else(|error| failed(&*error))
}

/// Prints the error, and advice if there is any.
fn failed(error: &(dyn Error + 'static)) -> ExitCode {
    eprintln!("ticket_office: {error}");
    ExitCode::from(error.downcast_ref::<run::RunError>().map_or(TROUBLE, run::RunError::code))
}
