//! The process that sells.

use std::io::{self, Write};
use std::sync::Arc;

use lockkeeper::Error;
use lockkeeper::error::PathError;
use lockkeeper_lock::LockError;
use thiserror::Error as ThisError;
use tokio::io::{AsyncBufReadExt, BufReader, Lines, Stdin, stdin};
use tokio::sync::{Mutex, mpsc};
use tokio::task::{JoinError, JoinSet};

use super::ledger::Ledger;
use super::messages::{Briefing, Done};
use super::orders::Order;
use super::sale::{Counter, SaleError};

/// The reason why a seller left before the office closed.
#[derive(Debug, ThisError)]
pub(crate) enum SellerError {
    #[error("a seller found no ensemble: {0}")]
    Connect(#[source] Error),
    #[error("a seller cannot talk to the office: {0}; sellers are started by the office, not by hand")]
    Office(#[from] io::Error),
    #[error("a seller was given a bad root: {0}")]
    Root(#[from] PathError),
    #[error("a seller could not serve an order: {0}")]
    Sale(#[from] SaleError),
    #[error("a seller could not close its session: {0}")]
    Shutdown(#[from] Error),
    #[error("a seller cannot reach the server of the locks: {0}")]
    Locks(#[from] LockError),
    #[error("a seller's task failed: {0}")]
    Task(#[from] JoinError),
}

type Queue = Arc<Mutex<mpsc::UnboundedReceiver<Order>>>;

/// Sells the orders on standard input until that ends, which it also does when the office dies.
pub(crate) async fn work() -> Result<(), SellerError> {
    let mut lines = BufReader::new(stdin()).lines();
    let Some(first) = lines.next_line().await? else { return Ok(()) };
    let briefing: Briefing = serde_json::from_str(&first).map_err(io::Error::from)?;
    let (sender, orders) = mpsc::unbounded_channel();
    let mut closed = tokio::spawn(hear(lines, sender));

    let who = format!("ticket office, seller {}, pid {}", briefing.seller, std::process::id());
    let manager = tokio::select! {
        opened = briefing.connection.open(&who) => opened.map_err(SellerError::Connect)?,
        _ = &mut closed => return Ok(()),
    };
    let counter = Arc::new(Counter {
        seller: briefing.seller,
        manager: manager.clone(),
        locks: briefing.engine.connect(&manager).await?,
        ledger: Ledger::new(&manager, briefing.root.parse()?),
        lock: briefing.lock,
        think: briefing.think,
    });
    let queue: Queue = Arc::new(Mutex::new(orders));
    let mut tasks = JoinSet::new();
    for _ in 0..briefing.tasks {
        tasks.spawn(serve(Arc::clone(&counter), Arc::clone(&queue)));
    }
    let served = tokio::select! {
        _ = &mut closed => Ok(()),
        Some(ended) = tasks.join_next() => ended.unwrap_or_else(|error| Err(error.into())),
    };
    // All holds and waits stop here; dropping guards and waits leaves no nodes.
    tasks.shutdown().await;
    let closed = manager.shutdown().await;
    served?;
    Ok(closed?)
}

/// Takes in orders until the office closes.
async fn hear(mut lines: Lines<BufReader<Stdin>>, orders: mpsc::UnboundedSender<Order>) -> io::Result<()> {
    while let Some(line) = lines.next_line().await? {
        if orders.send(serde_json::from_str(&line)?).is_err() {
            break;
        }
    }
    Ok(())
}

/// One of a seller's tasks: serves one order after the other.
async fn serve(counter: Arc<Counter>, queue: Queue) -> Result<(), SellerError> {
    loop {
        let next = queue.lock().await.recv().await;
        let Some(order) = next else { return Ok(()) };
        let entry = counter.serve(&order).await?;
        let done = Done { order: order.number, sold: if entry.sold { entry.seats } else { 0 } };
        writeln!(io::stdout().lock(), "{}", serde_json::json!(done))?;
    }
}
