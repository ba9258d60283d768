//! A `MultiLock`: a transfer locks two accounts at once, and two transfers do not wait for each other.
//!
//! Copy this file, and add the crates `lockkeeper`, `lockkeeper-testserver` and `tokio`.

use std::time::Duration;

use lockkeeper::znodes::Version;
use lockkeeper::{ConnectionManager, Error, MultiLock, Mutex};
use lockkeeper_testserver::TestServer;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A server for this run; or the servers of the first argument.
    let server = TestServer::start().await?;
    let servers = std::env::args().nth(1).unwrap_or_else(|| server.connect_string());
    let manager = ConnectionManager::connect(&servers).await?;
    for account in ["alice", "bob"] {
        manager.znodes().create_or_write(format!("/accounts/{account}"), "100").await?;
    }
    // In opposite orders, at the same time: the MultiLock sorts them.
    tokio::try_join!(transfer(&manager, "alice", "bob", 30), transfer(&manager, "bob", "alice", 10))?;
    println!("alice has {}, bob has {}", balance(&manager, "alice").await?, balance(&manager, "bob").await?);
    manager.shutdown().await?;
    Ok(())
}

async fn transfer(manager: &ConnectionManager, from: &str, to: &str, amount: i64) -> Result<(), Error> {
    let lock = |account: &str| Mutex::new(manager, format!("/locks/{account}"));
    let both = MultiLock::builder().lock(&lock(from)?).lock(&lock(to)?).build()?;
    let guard = both.acquire_timeout(Duration::from_secs(10)).await?;
    let less = (balance(manager, from).await? - amount).to_string();
    let more = (balance(manager, to).await? + amount).to_string();
    // Both writes or none, and only while both locks are held.
    guard
        .txn()
        .set(format!("/accounts/{from}"), less, Version::Any)
        .set(format!("/accounts/{to}"), more, Version::Any)
        .commit()
        .await?;
    guard.release().await?;
    Ok(())
}

async fn balance(manager: &ConnectionManager, account: &str) -> Result<i64, Error> {
    let read = manager.znodes().read(format!("/accounts/{account}")).await?;
    Ok(read.and_then(|(data, _)| String::from_utf8_lossy(&data).parse().ok()).unwrap_or_default())
}
