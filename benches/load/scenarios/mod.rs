//! The loads.

mod bare;
mod herd;
mod keep;
mod mutexes;
mod rw;
mod semaphore;
mod several;

use crate::Outcome;
use crate::arguments::Arguments;
use crate::report::Report;
use crate::run::{self, Measured, Worker};
use crate::stage::Stage;

/// Runs what was asked for.
pub(crate) async fn run(arguments: &Arguments) -> Outcome<Report> {
    if arguments.scenario() == "bare" {
        return bare::run(arguments).await;
    }
    let stage = match arguments.scenario() {
        "uncontended" | "multi" => Stage::open(arguments, 1).await?,
        "many" | "keep" if arguments.size("pool")? > 0 => {
            Stage::open_pool(arguments, arguments.size("pool")?).await?
        }
        _ => Stage::open(arguments, arguments.size("s")?).await?,
    };
    let report = match arguments.scenario() {
        "uncontended" => mutexes::uncontended(&stage).await,
        "handoff" => mutexes::handoff(&stage).await,
        "many" => mutexes::many(&stage).await,
        "rw" => rw::run(&stage).await,
        "semaphore" => semaphore::run(&stage).await,
        "multi" => several::run(&stage).await,
        "keep" => keep::run(&stage).await,
        _ => herd::run(&stage).await,
    }?;
    stage.close().await?;
    Ok(report)
}

/// Has the workers work for the time that was asked for.
async fn timed(stage: &Stage<'_>, workers: Vec<impl Worker>) -> Outcome<Measured> {
    let (warm, span) = (stage.arguments.seconds("warm")?, stage.arguments.seconds("t")?);
    run::for_a_time(workers, warm, span, &stage.meters).await
}

/// Has one worker do as many laps as were asked for.
async fn counted(stage: &Stage<'_>, worker: impl Worker) -> Outcome<Measured> {
    run::counted(worker, stage.arguments.number("warmn")?, stage.arguments.number("n")?, &stage.meters).await
}

fn report(stage: &Stage<'_>, measured: Measured, violations: u64) -> Report {
    Report::new(stage.arguments, &measured.tally, measured.cost, violations, measured.stuck)
}
