//! `lockkeeper-compare`: the same loads by lockkeeper and its peers, alternating on the same servers, and the
//! page that says how they did. Started by `benches/compare`; explained in `benches/README.md`.

mod bound;
mod chart;
mod limits_page;
mod machine;
mod measure;
mod options;
mod page;
mod peers;
mod plan;
mod relay;
mod results;
mod servers;
mod statistics;
mod table;
mod verdict;

use std::error::Error;
use std::fs;
use std::process::ExitCode;

use crate::options::Options;
use crate::results::Results;

/// The error of a comparison, for a reader.
type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lockkeeper-compare: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Outcome<()> {
    let options = Options::parse(std::env::args().skip(1))?;
    let mut results = Results::at(machine::built().join("comparison.jsonl"));
    if options.adds || options.only_writes {
        results.load()?;
    }
    if !options.only_writes {
        measure::run(&options, &mut results).await?;
    }
    let docs = machine::repository().join("docs");
    fs::write(docs.join("benchmarks.svg"), chart::draw(&results))?;
    fs::write(docs.join("benchmarks.md"), page::write(&results, &machine::description()))?;
    println!(
        "docs/benchmarks.md and docs/benchmarks.svg are written; every run is in {}",
        results.file().display()
    );
    Ok(())
}
