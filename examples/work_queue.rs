//! A `WorkQueue`: processes put orders and work them off, each done exactly once.
//!
//! Copy this file, and add the crates `lockkeeper`, `lockkeeper-testserver` and `tokio`.

use lockkeeper::{ConnectionManager, Error, WorkQueue};
use lockkeeper_testserver::TestServer;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A server for this run; or the servers of the first argument.
    let server = TestServer::start().await?;
    let servers = std::env::args().nth(1).unwrap_or_else(|| server.connect_string());
    let manager = ConnectionManager::connect(&servers).await?;

    let orders = WorkQueue::<String>::new(&manager, "/queues/orders")?;
    for order in ["2 tickets for alice", "1 ticket for bob", "4 tickets for carol", "1 ticket for dave"] {
        orders.put(&order.to_owned()).await?;
    }
    tokio::try_join!(work(&orders, 1), work(&orders, 2))?;
    manager.shutdown().await?;
    Ok(())
}

async fn work(orders: &WorkQueue<String>, worker: u32) -> Result<(), Error> {
    for _ in 0..2 {
        // If this process dies, another one takes the item.
        let item = orders.take().await?;
        let sale = item.run(async { format!("sold: {}", item.value()) }).await?;
        println!("worker {worker} {sale}");
        // The result and the end of the item are one transaction.
        item.done_with(|txn| txn.create_sequential("/sale-", sale)).await?;
    }
    Ok(())
}
