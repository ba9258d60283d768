//! A `RateLimiter`: a fleet together calls a partner at most five times in any half second.
//!
//! Copy this file, and add the crates `lockkeeper`, `lockkeeper-testserver` and `tokio`.

use std::time::Duration;

use lockkeeper::{ConnectionManager, KeyedRateLimiter, RateLimiter, TryAdmit};
use lockkeeper_testserver::TestServer;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A server for this run; or the servers of the first argument.
    let server = TestServer::start().await?;
    let servers = std::env::args().nth(1).unwrap_or_else(|| server.connect_string());
    let manager = ConnectionManager::connect(&servers).await?;

    // Waits until the next call may start.
    let partner = RateLimiter::new(&manager, "/limits/partner", 5, Duration::from_millis(500))?;
    for call in 1..=7 {
        let _admission = partner.admit_fresh().await?; // call the partner now
        println!("call {call} starts");
    }

    // Or does not wait, as a service that limits its callers: a limit for each customer.
    let customers = KeyedRateLimiter::new(&manager, "/limits/customers", 1, Duration::from_secs(60))?;
    for request in 1..=2 {
        match customers.of("alice")?.try_admit().await? {
            TryAdmit::Admitted(_) => println!("request {request} of alice: 200"),
            TryAdmit::Later { retry_after } => {
                println!("request {request} of alice: 429, Retry-After: {}", retry_after.as_secs() + 1);
            }
        }
    }
    manager.shutdown().await?;
    Ok(())
}
