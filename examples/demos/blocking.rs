//! Threads of a program without async sell the parts of a stock, and none is sold twice.
//!
//! What is left is a number in a node. A seller reads it and writes one less: under a [`ReentrantMutex`] no
//! other seller does so between the two. An order of two parts holds the lock for both, and calls the
//! function that sells one and locks for itself: its thread is the owner, and may. With `--no-lock` parts are
//! sold twice.
//!
//! The lock has methods for threads. Every other recipe is called by an async closure, here the [`Counter`]
//! that numbers the orders of all sellers.
//!
//! After Ctrl-C each thread ends the sale that it is in, and releases its lock. Then the nodes are deleted.
//!
//! `cargo run --example blocking`, or `-- --no-lock`, or `-- --connect host:port,…`

use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use clap::{Parser, value_parser};
use lockkeeper::blocking::{Blocking, ConnectionManager, ReentrantMutex};
use lockkeeper::znodes::{CreateMode, Version};
use lockkeeper::{Counter, Error, ZnodePath};
use lockkeeper_demos::fixture::{
    Common, Connection, Failure, GRACE, InterruptFlag, Server, Verdict, block_on, sweep,
};
use uuid::Uuid;

/// Sells the parts of a stock in several threads at once, none twice.
#[derive(Debug, Parser)]
#[command(name = "blocking")]
struct Sale {
    /// How many threads sell; every second one has a session of its own
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = value_parser!(u32).range(2..=64))]
    threads: u32,

    /// How many parts there are
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = value_parser!(u32).range(1..=10_000))]
    parts: u32,

    /// Sell without the lock, to see what it is good for
    #[arg(long)]
    no_lock: bool,

    #[command(flatten)]
    common: Common,
}

/// How long sessions are on the embedded server.
const SESSION: Duration = Duration::from_secs(4);

/// The timeout of a thread's acquire.
const PATIENCE: Duration = Duration::from_secs(60);

/// Between reading what is left and writing it.
const THINK: Duration = Duration::from_millis(2);

fn main() -> ExitCode {
    let code = Sale::parse().play();
    code.unwrap_or_else(|failure| {
        eprintln!("blocking: {failure}");
        ExitCode::from(failure.code())
    })
}

/// A stock, as one session sees it.
struct Stock {
    manager: ConnectionManager,
    lock: Option<ReentrantMutex>,
    left: ZnodePath,
    orders: Blocking<Counter>,
}

impl Stock {
    /// Sells two parts, or the last one, without another seller in between. Returns the number.
    fn sell_two(&self) -> Result<u32, Failure> {
        let outer = self.lock.as_ref().map(|lock| lock.acquire_timeout(PATIENCE)).transpose()?;
        let sold = u32::from(self.sell()?) + u32::from(self.sell()?);
        // The parts are sold even if the release fails: lockkeeper continues to delete the node.
        let _ = outer.map(|guard| guard.release());
        if sold > 0 {
            self.orders.call(async |orders| orders.increment().await)?;
        }
        Ok(sold)
    }

    /// Sells one part, whether or not the caller has the stock locked; false when there is none left.
    fn sell(&self) -> Result<bool, Failure> {
        let guard = self.lock.as_ref().map(|lock| lock.acquire_timeout(PATIENCE)).transpose()?;
        let left = self.left()?;
        if left == 0 {
            return Ok(false);
        }
        think();
        let fewer = (left - 1).to_string().into_bytes();
        match &guard {
            // Committed only if the lock is still ours, however long we were away.
            Some(guard) => {
                let written = guard.txn().set(self.left.clone(), fewer, Version::Any).commit();
                written.map_err(Error::from)?;
            }
            None => {
                self.manager
                    .call(async |manager| manager.znodes().write(&self.left, fewer, Version::Any).await)?;
            }
        }
        Ok(true)
    }

    fn left(&self) -> Result<u32, Failure> {
        let read = self.manager.call(async |manager| manager.znodes().read(&self.left).await)?;
        let number = read.and_then(|(data, _)| String::from_utf8(data).ok()?.parse().ok());
        number.ok_or_else(|| Failure::Other("the stock is missing; was its node deleted?".to_owned()))
    }
}

impl Sale {
    fn play(&self) -> Result<ExitCode, Failure> {
        // From here on Ctrl-C ends the sellers, and not the process with its locks.
        let interrupt = InterruptFlag::listen()?;
        // The server lives until everything is cleaned up.
        let (mut connection, _server) = match &self.common.connect {
            Some(servers) => (Connection::to(servers), None),
            None => {
                let server = block_on(Server::start())??;
                (server.connection(SESSION), Some(server))
            }
        };
        connection.session_timeout = self.common.session_timeout().or(connection.session_timeout);
        let manager = connect(&connection, "blocking")?;
        let root: ZnodePath =
            format!("/lockkeeper-examples/blocking-{}", Uuid::new_v4()).parse().map_err(Error::from)?;

        let judged = self.sell_out(&manager, &connection, &root, &interrupt);

        manager.call(async |manager| sweep(&manager.znodes(), root).await)?;
        // A session that cannot be closed in order expires.
        let _ = manager.shutdown_within(GRACE);
        let verdict = judged?;
        println!("{verdict}");
        Ok(verdict.code())
    }

    fn sell_out(
        &self,
        manager: &ConnectionManager,
        connection: &Connection,
        root: &ZnodePath,
        interrupt: &InterruptFlag,
    ) -> Result<Verdict, Failure> {
        let (left, parts) = (root.child("left").map_err(Error::from)?, self.parts.to_string());
        manager.call(async |manager| {
            manager.znodes().create(&left, parts.as_bytes(), CreateMode::Persistent).await
        })?;

        let other = connect(connection, "blocking, second session")?;
        let mut stocks = Vec::new();
        for number in 1..=self.threads {
            let manager = if number % 2 == 0 { &other } else { manager };
            let lock = ReentrantMutex::new(manager, format!("{root}/lock"))?;
            let orders = manager.wrap(async |manager| Counter::new(manager, format!("{root}/orders")))?;
            stocks.push(Stock {
                manager: manager.clone(),
                lock: (!self.no_lock).then_some(lock),
                left: left.clone(),
                orders,
            });
        }
        let sold_by_all: Vec<Result<u32, Failure>> = thread::scope(|threads| {
            let sell_out = |stock: &Stock| -> Result<u32, Failure> {
                let mut sold = 0;
                loop {
                    interrupt.check()?;
                    match stock.sell_two()? {
                        0 => return Ok(sold),
                        more => sold += more,
                    }
                }
            };
            let selling: Vec<_> = stocks.iter().map(|stock| threads.spawn(move || sell_out(stock))).collect();
            let panicked = |_| Err(Failure::Other("a thread panicked".to_owned()));
            selling.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).collect()
        });
        let count = async |manager: &_| Counter::new(manager, format!("{root}/orders"))?.get().await;
        let orders = manager.call(count);
        let _ = other.shutdown_within(GRACE);
        let mut sold = 0;
        for by_one in sold_by_all {
            sold += by_one?;
        }
        let (threads, parts) = (self.threads, self.parts);
        let numbers = format!("{threads} threads sold {sold} of {parts} parts in {} orders", orders?);
        Ok(Verdict::of(sold == self.parts, numbers))
    }
}

fn connect(connection: &Connection, client: &str) -> Result<ConnectionManager, Error> {
    ConnectionManager::connect_with(connection.builder(client))
}

#[expect(clippy::disallowed_methods, reason = "there is no runtime to be blocked")]
fn think() {
    thread::sleep(THINK);
}
