//! The frame of a service: it works under a lock until SIGTERM, and hands the lock over before it ends.
//!
//! Copy this file, and add the crates `lockkeeper`, `lockkeeper-testserver` and `tokio`.

use std::time::Duration;

use lockkeeper::{ConnectionManager, Error, Mutex};
use lockkeeper_testserver::TestServer;
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut terminated = signal(SignalKind::terminate())?;
    // A server for this run; or the servers of the first argument.
    let server = TestServer::start().await?;
    let servers = std::env::args().nth(1).unwrap_or_else(|| server.connect_string());
    let manager = ConnectionManager::connect(&servers).await?;

    let working = tokio::spawn(work(manager.clone()));
    tokio::select! {
        biased;
        _ = terminated.recv() => println!("SIGTERM"),
        _ = tokio::signal::ctrl_c() => println!("Ctrl-C"),
    }
    // Waits for an acquire end with an error, holders see `closing()`, and what is still held after the limit
    // is released by the end of the session.
    let cut_off = manager.shutdown_within(Duration::from_secs(10)).await?;
    working.await??;
    println!("{cut_off} locks were still held");
    Ok(())
}

async fn work(manager: ConnectionManager) -> Result<(), Error> {
    let mutex = Mutex::new(&manager, "/locks/worker")?;
    let guard = match mutex.acquire().await {
        Err(error) if error.is_closed() => return Ok(()), // SIGTERM came first
        acquired => acquired?,
    };
    println!("working under {}", guard.fencing_token());
    tokio::select! {
        biased;
        () = manager.closing() => println!("the work is saved"),
        lost = guard.lost() => println!("the lock is lost: {lost}"),
    }
    guard.release().await?;
    Ok(())
}
