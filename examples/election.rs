//! An `Election`: of all processes one leads and plans, and the next one leads when it ends.
//!
//! Copy this file, and add the crates `lockkeeper`, `lockkeeper-testserver` and `tokio`.

use std::ops::ControlFlow;

use lockkeeper::{ConnectionManager, Election, Error};
use lockkeeper_testserver::TestServer;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A server for this run; or the servers of the first argument.
    let server = TestServer::start().await?;
    let servers = std::env::args().nth(1).unwrap_or_else(|| server.connect_string());

    // Two processes, here by two sessions.
    let (first, second) =
        tokio::join!(participate(&servers, "planner-1"), participate(&servers, "planner-2"));
    first?;
    second?;
    Ok(())
}

async fn participate(servers: &str, id: &str) -> Result<(), Error> {
    let manager = ConnectionManager::connect(servers).await?;
    let election = Election::new(&manager, "/elections/planner", id)?;
    let mut terms = 0;
    // Campaigns, leads, and campaigns again after a term that was lost, until the closure breaks.
    election
        .lead(|leadership| {
            terms += 1;
            async move {
                // Committed only if this participant still leads.
                let plan = format!("term {terms} of {}", leadership.fencing_token());
                match leadership.txn().create_sequential("/plan-", plan).commit().await {
                    Ok(_) => println!("{id} leads and has planned"),
                    Err(error) => println!("{id} leads no more: {error}"),
                }
                if terms < 2 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            }
        })
        .await?;
    manager.shutdown().await
}
