//! `lockkeeper::blocking`: a program of threads, without async.
//!
//! Copy this file, and add the crates `lockkeeper`, `lockkeeper-testserver` and `tokio`, which starts the
//! server of this run.

use std::thread;
use std::time::Duration;

use lockkeeper::blocking::{ConnectionManager, Mutex};
use lockkeeper::{Counter, Error};
use lockkeeper_testserver::TestServer;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A server for this run; or the servers of the first argument.
    let server = tokio::runtime::Builder::new_current_thread().build()?.block_on(TestServer::start())?;
    let servers = std::env::args().nth(1).unwrap_or_else(|| server.connect_string());
    let manager = ConnectionManager::connect(&servers)?;

    let mutex = Mutex::new(&manager, "/locks/train-7")?;
    // A recipe without a blocking type is called by an async closure.
    let sales = manager.wrap(async |manager| Counter::new(manager, "/sales"))?;
    thread::scope(|threads| {
        let sellers: Vec<_> = (1..=3)
            .map(|seller| {
                let (mutex, sales) = (&mutex, &sales);
                threads.spawn(move || {
                    let guard = mutex.acquire_timeout(Duration::from_secs(10))?;
                    guard.check()?; // between the steps of the work
                    let number = sales.call(async |sales| sales.increment().await)?;
                    println!("seller {seller}: sale {number}, under {}", guard.fencing_token());
                    guard.release()?;
                    Ok::<_, Error>(())
                })
            })
            .collect();
        sellers.into_iter().try_for_each(|seller| seller.join().unwrap_or(Ok(())))
    })?;
    manager.shutdown()?;
    Ok(())
}
