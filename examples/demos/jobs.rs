//! Orders that several processes work off, while some of them are killed; each order is done once.
//!
//! A [`WorkQueue`] gives each order to one process. The process writes its receipt by `done_with`, in the
//! transaction that ends the order: so an order whose process is killed before has no receipt, and comes
//! back. With `--naive` a process reads the first order, writes the receipt and deletes the order: two
//! processes do the same one.
//!
//! `cargo run --example jobs`, or `-- --kill 2`, or `-- --naive`, or `-- --json`, or
//! `-- --connect host:port,…`

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, value_parser};
use lockkeeper::znodes::CreateMode;
use lockkeeper::{Error, WorkQueue};
use lockkeeper_demos::fixture::{Common, Example, Failure, Fixture, Verdict, Worker, patiently, play};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

/// Works off orders in several processes, some of which are killed; none is lost, and none is done twice.
#[derive(Debug, Parser)]
#[command(name = "jobs")]
struct Jobs {
    /// How many orders there are
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = value_parser!(u32).range(1..=9_999))]
    items: u32,

    /// How many processes work them off
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = value_parser!(u32).range(2..=64))]
    processes: u32,

    /// How many processes are killed (kill -9) in the middle of an order; another one replaces each
    #[arg(long, value_name = "N", default_value_t = 0, default_missing_value = "2", num_args = 0..=1)]
    kill: u32,

    /// Read an order, do it and delete it, to see what that doubles
    #[arg(long)]
    naive: bool,

    /// End with a line of JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    common: Common,
}

/// The queue.
const ORDERS: &str = "orders";

/// The orders of `--naive`.
const PLAIN: &str = "plain";

/// One node for each time that an order was done.
const RECEIPTS: &str = "receipts";

/// The work on one order.
const WORK: Duration = Duration::from_millis(5);

/// A process has begun an order.
#[derive(Debug, Serialize, Deserialize)]
struct Started;

fn main() -> ExitCode {
    play::<Jobs>()
}

impl Jobs {
    /// Works off the queue until it is empty.
    async fn work_off(worker: &Worker) -> Result<(), Failure> {
        let queue = WorkQueue::<String>::new(worker.manager(), worker.path(ORDERS)?)?;
        loop {
            let item = match queue.take_timeout(Duration::from_millis(200)).await {
                Ok(item) => item,
                // Another process may still give its order up, by its end.
                Err(error) if error.is_timeout() => match patiently(|| queue.inspect()).await?.item_count {
                    0 => return Ok(()),
                    _ => continue,
                },
                Err(error) if error.is_transient() => continue,
                Err(error) => return Err(error.into()),
            };
            worker.tell(&Started)?;
            if item.run(sleep(WORK)).await.is_err() {
                continue;
            }
            let receipt = worker.path(&format!("{RECEIPTS}/{}-", item.value()))?;
            match item.done_with(|txn| txn.create_sequential(receipt, b"")).await {
                // If it is not done, it comes back.
                Ok(()) | Err(Error::NotCommitted(_)) => {}
                Err(error) if error.is_transient() => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Reads the first order, does it, and deletes it.
    async fn work_off_naively(worker: &Worker) -> Result<(), Failure> {
        let (znodes, orders) = (worker.znodes(), worker.path(PLAIN)?);
        loop {
            let orders_left = znodes.children(&orders).await?.unwrap_or_default();
            let Some(first) = orders_left.iter().min() else { return Ok(()) };
            worker.tell(&Started)?;
            sleep(WORK).await;
            let receipt = worker.path(&format!("{RECEIPTS}/{first}-"))?;
            znodes.create(&receipt, b"", CreateMode::PersistentSequential).await?;
            znodes.delete(&worker.path(&format!("{PLAIN}/{first}"))?).await?;
        }
    }

    async fn put(&self, fixture: &Fixture<Started>) -> Result<(), Failure> {
        let orders: Vec<String> = (0..self.items).map(|number| format!("{number:04}")).collect();
        if self.naive {
            for order in &orders {
                fixture.set_up(&format!("{PLAIN}/{order}"), b"").await?;
            }
            return Ok(());
        }
        let queue = WorkQueue::<String>::new(fixture.manager(), fixture.path(ORDERS)?)?;
        for orders in orders.chunks(100) {
            queue.put_all(orders).await?;
        }
        Ok(())
    }

    /// How often each order was done.
    async fn receipts(fixture: &Fixture<Started>) -> Result<BTreeMap<String, u32>, Failure> {
        let (znodes, receipts) = (fixture.znodes(), fixture.path(RECEIPTS)?);
        let mut counts = BTreeMap::new();
        for name in znodes.children(&receipts).await?.unwrap_or_default() {
            let order = name.split_once('-').map_or(name.as_str(), |(order, _)| order);
            *counts.entry(order.to_owned()).or_insert(0) += 1;
        }
        Ok(counts)
    }
}

impl Example for Jobs {
    type News = Started;

    /// The order of a killed process is free again after this and a tick.
    const SESSION: Duration = Duration::from_millis(1_500);

    fn common(&self) -> &Common {
        &self.common
    }

    async fn work(&self, worker: &Worker) -> Result<(), Failure> {
        match self.naive {
            true => Self::work_off_naively(worker).await,
            false => Self::work_off(worker).await,
        }
    }

    async fn lead(&self, fixture: &mut Fixture<Started>) -> Result<Verdict, Failure> {
        fixture.set_up(RECEIPTS, b"").await?;
        self.put(fixture).await?;
        fixture.start(self.processes).await?;
        let how = if self.naive { "by reading and deleting" } else { "from a work queue" };
        println!("{} processes work off {} orders, {how}", self.processes, self.items);

        let (mut started, mut killed) = (0, 0);
        while let Some((process, Started)) = fixture.next().await? {
            started += 1;
            // Evenly over the orders.
            if killed < self.kill && started > self.items * (killed + 1) / (self.kill + 2) {
                fixture.kill(process)?;
                killed += 1;
                println!("process {process} is killed in the middle of an order");
                fixture.start(1).await?;
            }
        }
        fixture.close().await;

        let receipts = Self::receipts(fixture).await?;
        let done = u32::try_from(receipts.len()).unwrap_or(u32::MAX);
        let (items, lost) = (self.items, self.items.saturating_sub(done));
        let doubled: u32 = receipts.values().map(|count| count - 1).sum();
        let holds = lost == 0 && doubled == 0 && killed == self.kill;
        if self.json {
            let numbers = serde_json::json!({
                "items": items, "done": done, "lost": lost, "doubled": doubled, "killed": killed,
                "proved": holds,
            });
            return Ok(Verdict::line(holds, numbers.to_string()));
        }
        Ok(Verdict::of(holds, format!("items={items} done={done} lost={lost} doubled={doubled}")))
    }
}
