//! A `RwLock`: many processes read a price list of two nodes, and none reads it half-written.
//!
//! Copy this file, and add the crates `lockkeeper`, `lockkeeper-testserver` and `tokio`.

use lockkeeper::znodes::Version;
use lockkeeper::{ConnectionManager, Error, RwLock};
use lockkeeper_testserver::TestServer;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A server for this run; or the servers of the first argument.
    let server = TestServer::start().await?;
    let servers = std::env::args().nth(1).unwrap_or_else(|| server.connect_string());
    let manager = ConnectionManager::connect(&servers).await?;
    for path in ["/prices/adult", "/prices/child"] {
        manager.znodes().create_or_write(path, "1").await?;
    }
    let lock = RwLock::new(&manager, "/locks/prices")?;

    let (read, written, read_again) =
        tokio::join!(read(&manager, &lock), write(&lock, "2"), read(&manager, &lock));
    written?;
    for (adult, child) in [read?, read_again?] {
        println!("an adult pays {adult}, a child {child}");
    }
    manager.shutdown().await?;
    Ok(())
}

async fn read(manager: &ConnectionManager, lock: &RwLock) -> Result<(String, String), Error> {
    let guard = lock.read().await?; // beside other readers
    let price = async |path: &str| {
        let read = manager.znodes().read(path).await?;
        Ok::<_, Error>(read.map(|(data, _)| String::from_utf8_lossy(&data).into_owned()).unwrap_or_default())
    };
    let prices =
        guard.run(async { Ok::<_, Error>((price("/prices/adult").await?, price("/prices/child").await?)) });
    let prices = prices.await??;
    guard.release().await?;
    Ok(prices)
}

async fn write(lock: &RwLock, price: &str) -> Result<(), Error> {
    let guard = lock.write().await?; // alone
    guard.txn().set("/prices/adult", price, Version::Any).commit().await?;
    guard.txn().set("/prices/child", price, Version::Any).commit().await?;
    guard.release().await?;
    Ok(())
}
