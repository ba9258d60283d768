//! A `Partition`: processes share the shards of an index, each shard worked on by one of them.
//!
//! Copy this file, and add the crates `lockkeeper`, `lockkeeper-testserver` and `tokio`.

use lockkeeper::{ConnectionManager, Error, Partition};
use lockkeeper_testserver::TestServer;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A server for this run; or the servers of the first argument.
    let server = TestServer::start().await?;
    let servers = std::env::args().nth(1).unwrap_or_else(|| server.connect_string());
    let manager = ConnectionManager::connect(&servers).await?;

    let partition = Partition::new(&manager, "/shards")?;
    partition.add(["0", "1", "2", "3"]).await?; // by any process, any number of times
    tokio::try_join!(work(&partition, "indexer-1"), work(&partition, "indexer-2"))?;
    manager.shutdown().await?;
    Ok(())
}

/// A member works on every shard that it is given, until the shard moves to another member.
async fn work(partition: &Partition, id: &str) -> Result<(), Error> {
    let mut member = partition.join(id)?;
    if let Some(shard) = member.next().await {
        println!("{id} works on shard {}, fenced by {}", shard.item(), shard.fencing_token());
        let working = tokio::spawn(async move {
            let reason = shard.release_requested().await; // work beside this, and stop when it resolves
            println!("shard {} is given up: {reason}", shard.item());
        });
        // A program would take more shards in a loop. This one leaves: the others get its shards.
        member.leave().await?;
        let _ = working.await;
    }
    Ok(())
}
