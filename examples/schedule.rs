//! A `Schedule`: a cron job of a fleet, which one process runs once per interval.
//!
//! Copy this file, and add the crates `lockkeeper`, `lockkeeper-testserver` and `tokio`.

use std::time::Duration;

use lockkeeper::{ConnectionManager, Error, Schedule};
use lockkeeper_testserver::TestServer;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A server for this run; or the servers of the first argument.
    let server = TestServer::start().await?;
    let servers = std::env::args().nth(1).unwrap_or_else(|| server.connect_string());
    let manager = ConnectionManager::connect(&servers).await?;

    // Three processes would do the same, each with its own manager.
    tokio::try_join!(report(&manager, 1), report(&manager, 2), report(&manager, 3))?;
    manager.shutdown().await?;
    Ok(())
}

async fn report(manager: &ConnectionManager, process: u32) -> Result<(), Error> {
    // In a program: a day, with_offset(two hours) for two o'clock UTC.
    let nightly = Schedule::new(manager, "/schedules/report", Duration::from_millis(300))?;
    let slot = nightly.due().await?;
    let orders = slot.run(async { 42 }).await?; // dropped if the slot is lost
    println!("process {process} reports {orders} orders, fenced by {}", slot.fencing_token());
    slot.done(format!("{orders} orders")).await?;
    Ok(())
}
