//! `lockkeeper-bench CONNECT SCENARIO key=value…`: puts load on an ensemble and prints what it saw as one JSON line.
//!
//! | scenario | what it does | keys, with defaults |
//! |---|---|---|
//! | `uncontended` | one task takes and releases a free mutex | `n=1000` cycles, `warmn=100` before them |
//! | `handoff` | waiters pass one mutex on | `w=10` waiters over `s=2` sessions for `t=5` seconds |
//! | `many` | each task has a mutex of its own | `w=100` tasks, `k=100` paths, `s=1` sessions, `t=5` seconds |
//! | `herd` | everyone waits, then each is served once | `w=200` waiters over `s=2` sessions |
//!
//! Times are in microseconds. Compare figures of one run on one machine only.

mod arguments;
mod scenarios;
mod stopwatch;

use std::process::ExitCode;

use crate::arguments::Arguments;

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("lockkeeper-bench: {error}");
            ExitCode::from(2)
        }
    }
}

async fn run() -> Result<serde_json::Value, Box<dyn std::error::Error>> {
    let arguments = Arguments::parse(std::env::args().skip(1))?;
    let mut report = scenarios::run(&arguments).await?;
    if let Some(object) = report.as_object_mut() {
        object.insert("scenario".to_owned(), arguments.scenario().into());
        object.insert("keys".to_owned(), arguments.given().into());
    }
    Ok(report)
}
