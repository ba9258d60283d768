//! `lockkeeper-bench CONNECT SCENARIO key=value…`: puts load on an ensemble and prints the measurements as
//! one JSON line.
//!
//! The scenarios, their keys and the fields of the line are explained in `benches/README.md`. Exit code: 0,
//! or 1 if exclusion or capacity was broken, or 2 if the load could not be run.

mod arguments;
mod counters;
mod fixture;
mod measurements;
mod pause;
mod report;
mod room;
mod run;
mod scenarios;

use std::error::Error;
use std::process::ExitCode;

use crate::arguments::Arguments;
use crate::report::Report;

/// The error of a load, for a reader.
type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> ExitCode {
    match run() {
        Ok(report) => {
            println!("{}", report.line());
            if report.is_broken() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
        }
        Err(error) => {
            eprintln!("lockkeeper-bench: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Outcome<Report> {
    let arguments = Arguments::parse(std::env::args().skip(1))?;
    let mut runtime = match arguments.size("threads")? {
        1 => tokio::runtime::Builder::new_current_thread(),
        0 => tokio::runtime::Builder::new_multi_thread(),
        threads => {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            builder.worker_threads(threads);
            builder
        }
    };
    runtime.enable_all().build()?.block_on(scenarios::run(&arguments))
}
