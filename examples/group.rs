//! A `Group`: who is there, and an `OnceCell`: a value that the first process sets for all.
//!
//! Copy this file, and add the crates `lockkeeper`, `lockkeeper-testserver` and `tokio`.

use lockkeeper::{ConnectionManager, Group, OnceCell};
use lockkeeper_testserver::TestServer;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A server for this run; or the servers of the first argument.
    let server = TestServer::start().await?;
    let servers = std::env::args().nth(1).unwrap_or_else(|| server.connect_string());
    let manager = ConnectionManager::connect(&servers).await?;

    let cluster = OnceCell::new(&manager, "/cluster/id")?;
    let id = cluster.get_or_init(async || b"c-4711".to_vec()).await?;
    println!("the cluster is {}", String::from_utf8_lossy(&id));

    let group = Group::new(&manager, "/groups/indexers")?;
    let membership = group.join("indexer-1", "10.0.0.7:8080")?;
    membership.registered().await?;
    let members = group.members()?; // a copy that follows the servers
    members.sync().await?;
    println!("members: {:?}", members.ids());

    membership.leave().await?;
    members.sync().await?;
    println!("members: {:?}", members.ids());
    manager.shutdown().await?;
    Ok(())
}
