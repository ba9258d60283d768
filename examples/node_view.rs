//! A `NodeView`: a process follows its configuration, and keeps the last good version of it.
//!
//! Copy this file, and add the crates `lockkeeper`, `lockkeeper-testserver` and `tokio`.

use std::error::Error;

use lockkeeper::{ConnectionManager, NodeView};
use lockkeeper_testserver::TestServer;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // A server for this run; or the servers of the first argument.
    let server = TestServer::start().await?;
    let servers = std::env::args().nth(1).unwrap_or_else(|| server.connect_string());
    let manager = ConnectionManager::connect(&servers).await?;
    manager.znodes().create_or_write("/config/workers", "4").await?;

    let view = NodeView::new_decoded(&manager, "/config/workers", |data| {
        Ok::<u32, Box<dyn Error + Send + Sync>>(std::str::from_utf8(data)?.parse()?)
    })?;
    let mut changes = view.changes();
    view.ready().await?; // the first version is here
    println!("running with {:?} workers", view.node().and_then(|node| node.value().ok().copied()));

    // An operator, in another process.
    let znodes = manager.znodes();
    let operator = tokio::spawn(async move {
        for workers in ["8", "many", "16"] {
            znodes.create_or_write("/config/workers", workers).await?;
        }
        Ok::<_, lockkeeper::Error>(())
    });

    while let Some(change) = changes.next().await {
        // Changes that follow each other quickly may be seen as one.
        let Some(node) = change.snapshot().root() else { continue };
        match node.value() {
            Ok(workers) => println!("now with {workers} workers"),
            Err(error) => println!("kept the last good version: {error}"),
        }
        if node.data() == b"16" {
            break;
        }
    }
    operator.await??;
    manager.shutdown().await?;
    Ok(())
}
