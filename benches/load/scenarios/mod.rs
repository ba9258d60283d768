//! The loads.

mod admit;
mod bare;
mod count;
mod elections;
mod expire;
mod failover;
mod herd;
mod keep;
mod keyed;
mod lookup;
mod members;
mod mutexes;
mod queue;
mod rebalance;
mod rw;
mod semaphore;
mod several;
mod table;
mod view;

use crate::Outcome;
use crate::arguments::Arguments;
use crate::fixture::Fixture;
use crate::report::Report;
use crate::run::{self, Measured, Worker};

/// Runs what was asked for.
pub(crate) async fn run(arguments: &Arguments) -> Outcome<Report> {
    if arguments.scenario() == "bare" {
        return bare::run(arguments).await;
    }
    let fixture = match arguments.scenario() {
        "uncontended" | "multi" | "view" | "failover" | "lead" | "lookup" | "expire" | "register" => {
            Fixture::open(arguments, 1).await?
        }
        "many" | "keep" if arguments.number("pool")? > 0 => {
            Fixture::open_pool(arguments, u32::try_from(arguments.number("pool")?)?).await?
        }
        _ => Fixture::open(arguments, arguments.size("s")?).await?,
    };
    let report = match arguments.scenario() {
        "uncontended" => mutexes::uncontended(&fixture).await,
        "handoff" => mutexes::handoff(&fixture).await,
        "many" => mutexes::many(&fixture).await,
        "rw" => rw::run(&fixture).await,
        "semaphore" => semaphore::run(&fixture).await,
        "admit" => admit::run(&fixture).await,
        "count" => count::run(&fixture).await,
        "multi" => several::run(&fixture).await,
        "table" => table::run(&fixture).await,
        "queue" => queue::run(&fixture).await,
        "view" => view::run(&fixture).await,
        "lookup" => lookup::run(&fixture).await,
        "keep" => keep::run(&fixture).await,
        "keyed" => keyed::run(&fixture).await,
        "members" => members::run(&fixture).await,
        "rebalance" => rebalance::run(&fixture).await,
        "elect" => elections::elect(&fixture).await,
        "failover" => failover::failover(&fixture).await,
        "lead" => failover::lead(&fixture).await,
        "expire" => expire::expire(&fixture).await,
        "register" => expire::register(&fixture).await,
        _ => herd::run(&fixture).await,
    }?;
    fixture.close().await?;
    Ok(report)
}

/// Has the workers work for the time that was asked for.
async fn timed(fixture: &Fixture<'_>, workers: Vec<impl Worker>) -> Outcome<Measured> {
    let (warm, span) = (fixture.arguments.seconds("warm")?, fixture.arguments.seconds("t")?);
    run::for_a_time(workers, warm, span, &fixture.meters).await
}

/// Has one worker do as many laps as were asked for.
async fn counted(fixture: &Fixture<'_>, worker: impl Worker) -> Outcome<Measured> {
    run::counted(worker, fixture.arguments.number("warmn")?, fixture.arguments.number("n")?, &fixture.meters)
        .await
}

fn report(fixture: &Fixture<'_>, measured: Measured, violations: u64) -> Report {
    Report::new(fixture.arguments, &measured.measurements, measured.cost, violations, measured.stuck)
}
