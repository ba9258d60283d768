//! `Discovery`: instances of a service register, and a client balances its calls over them.
//!
//! Copy this file, and add the crates `lockkeeper` (feature `discovery`), `lockkeeper-testserver` and
//! `tokio`.

use std::time::Duration;

use lockkeeper::discovery::{Instance, Strategy};
use lockkeeper::{ConnectionManager, Discovery};
use lockkeeper_testserver::TestServer;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A server for this run; or the servers of the first argument.
    let server = TestServer::start().await?;
    let servers = std::env::args().nth(1).unwrap_or_else(|| server.connect_string());
    let manager = ConnectionManager::connect(&servers).await?;

    // Two processes of the service. The node of each is there as long as the process, in every session.
    let discovery = Discovery::new(&manager, "/services")?;
    let one = discovery.register(Instance::new("web", "10.0.0.7", 8080))?;
    let two = discovery.register(Instance::new("web", "10.0.0.8", 8080))?;
    tokio::try_join!(one.registered(), two.registered())?;

    // A client.
    let balancer = discovery.balancer("web", Strategy::RoundRobin)?;
    for _ in 0..4 {
        let instance = balancer.choose_timeout(Duration::from_secs(5)).await?;
        println!("call {}:{}", instance.address().unwrap_or("?"), instance.port().unwrap_or_default());
    }
    one.release().await?;
    two.release().await?;
    manager.shutdown().await?;
    Ok(())
}
