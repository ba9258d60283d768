//! `Migrations` and a `Table`: a fleet changes what it stores once, and follows typed settings.
//!
//! Copy this file, and add the crates `lockkeeper` (feature `json`), `lockkeeper-testserver`, `serde`
//! (feature `derive`) and `tokio`.

use lockkeeper::{ConnectionManager, Migrations, Table};
use lockkeeper_testserver::TestServer;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Quota {
    calls: u32,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A server for this run; or the servers of the first argument.
    let server = TestServer::start().await?;
    let servers = std::env::args().nth(1).unwrap_or_else(|| server.connect_string());
    let manager = ConnectionManager::connect(&servers).await?;

    // Every process runs them when it starts. Each step is done once over the whole fleet.
    let migrations =
        Migrations::new(&manager, "/migrations/shop")?
            .step("create the quotas", 1, async |manager| Ok(manager.txn().create("/quotas", "")));
    println!("migrated: {:?}", migrations.run().await?.steps);

    let quotas: Table<Quota> = Table::new(&manager, "/quotas")?;
    let view = quotas.view()?;
    let raised = quotas
        .update("alice", |quota| Some(Quota { calls: quota.map_or(10, |quota| quota.calls + 5) }))
        .await?;
    println!("written: {:?}", raised.map(|written| written.value));

    // The view of another process has it a moment later; `sync` waits for it.
    let seen = view.sync().await?;
    println!("seen: {:?}", seen.get("alice")?);
    manager.shutdown().await?;
    Ok(())
}
