//! Several processes sell the seats of one train from a database: one transaction writes the order and the
//! rest of the stock, under a lock of ZooKeeper.
//!
//! Some sellers are stopped (SIGSTOP) between their look at the stock and their sale, until their session has
//! expired and another seller has sold; one is killed there. A seller that continues sells from what it had
//! read. The fence refuses it, because the database has seen a newer token. `--no-fence` has the database
//! take its sale: more seats are sold than there are. `--versions` sells without lock and fence, by `WHERE
//! version = …`: nothing is oversold either, and the sellers that meet try again.
//!
//! `cargo run -p lockkeeper-fence --features sqlite,postgres --example orders_sql`, with SQLite in a
//! temporary file, or `-- --postgres URL`, `-- --no-fence`, `-- --versions`, `-- --connect host:port,…`

mod shop;

use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, value_parser};
use lockkeeper::{FencingToken, Mutex};
use lockkeeper_demos::fixture::{Common, Example, Failure, Fixture, Verdict, Worker, patiently, play};
use serde::{Deserialize, Serialize};

use self::shop::{Sale, Shop, ShopAddress};

/// Sells seats from a database in several processes, some of which are stopped for too long.
#[derive(Debug, Parser)]
#[command(name = "orders_sql")]
struct OrdersSql {
    /// How many processes sell
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = value_parser!(u32).range(3..=64))]
    sellers: u32,

    /// How many seats there are
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = value_parser!(u32).range(20..=10_000))]
    seats: u32,

    /// Sell in PostgreSQL, in a schema of this run, instead of SQLite; such as postgres://user@localhost/shop
    #[arg(long, value_name = "URL")]
    postgres: Option<String>,

    /// Have the database take the sales of sellers that are late
    #[arg(long, conflicts_with = "versions")]
    no_fence: bool,

    /// Sell without lock and fence: a sale is refused if the stock was changed since it was read
    #[arg(long)]
    versions: bool,

    #[command(flatten)]
    common: Common,
}

/// The messages of a seller.
#[derive(Debug, Serialize, Deserialize)]
enum News {
    /// It has read the stock, and waits for the line to sell.
    Looked,
    /// It has sold a seat.
    Sold,
    /// Its sale, or its look, was refused.
    Refused,
}

/// What the leading process has seen.
#[derive(Debug, Default)]
struct Seen {
    looks: u32,
    paused: Option<u32>,
    pauses: u32,
    refused: u32,
}

/// The looks after which a seller is stopped, and the one after which it is killed.
const PAUSED_AT: [u32; 2] = [5, 15];
const KILLED_AT: u32 = 10;

fn main() -> ExitCode {
    play::<OrdersSql>()
}

/// Looks, and sells what it has seen. Whether there is more to sell.
async fn sell(
    worker: &Worker,
    shop: &mut Shop,
    token: Option<FencingToken>,
    versions: bool,
) -> Result<bool, Failure> {
    let Some(stock) = shop.look(token).await? else {
        worker.tell(&News::Refused)?;
        return Ok(true);
    };
    if stock.seats <= 0 {
        return Ok(false);
    }
    worker.tell(&News::Looked)?;
    // The customer pays. That may take longer than the session of this process lives, and no check of the
    // lock behind it could be late enough: the database decides.
    let _go_on: bool = worker.hear().await?;
    let news = match shop.sell(worker.number(), stock, token, versions).await? {
        Sale::Done => News::Sold,
        Sale::Refused => News::Refused,
    };
    worker.tell(&news)?;
    Ok(true)
}

impl OrdersSql {
    async fn watch(&self, fixture: &mut Fixture<News>, seen: &mut Seen) -> Result<(), Failure> {
        while let Some((seller, news)) = fixture.next().await? {
            match news {
                News::Looked => {
                    seen.looks += 1;
                    if PAUSED_AT.contains(&seen.looks) && seen.paused.is_none() {
                        fixture.pause(seller)?;
                        println!("seller {seller} is stopped (SIGSTOP) before its sale");
                        seen.paused = Some(seller);
                        seen.pauses += 1;
                    } else if seen.looks == KILLED_AT {
                        fixture.kill(seller)?;
                        println!("seller {seller} is killed before its sale");
                    }
                    fixture.tell(seller, &true).await;
                }
                News::Sold => {
                    if let Some(paused) = seen.paused.take_if(|paused| *paused != seller) {
                        println!("seller {seller} has sold; seller {paused} continues");
                        fixture.resume(paused)?;
                    }
                }
                News::Refused => {
                    seen.refused += 1;
                    if !self.versions {
                        println!("the database REFUSES seller {seller}: its token is stale");
                    }
                }
            }
        }
        Ok(())
    }
}

impl Example for OrdersSql {
    type News = News;

    /// A seller that is stopped for longer than this has lost its lock.
    const SESSION: Duration = Duration::from_secs(1);

    fn common(&self) -> &Common {
        &self.common
    }

    async fn work(&self, worker: &Worker) -> Result<(), Failure> {
        let address = worker.path("address")?;
        let address = worker.znodes().read(&address).await?;
        let (address, _) = address.ok_or_else(|| Failure::Other("no database is named".to_owned()))?;
        let mut shop = Shop::open(&serde_json::from_slice(&address)?).await?;
        if self.versions {
            while sell(worker, &mut shop, None, true).await? {}
            return Ok(());
        }
        let mutex = Mutex::new(worker.manager(), worker.path("train-7")?.as_str())?;
        loop {
            let guard = patiently(|| mutex.acquire()).await?;
            let token = (!self.no_fence).then(|| guard.fencing_token());
            if !sell(worker, &mut shop, token, false).await? {
                return Ok(());
            }
            // A hold that was lost cannot be released, and need not be.
            let _ = guard.release().await;
        }
    }

    async fn lead(&self, fixture: &mut Fixture<News>) -> Result<Verdict, Failure> {
        let folder = tempfile::tempdir()?;
        let schema = format!("lockkeeper_orders_{}", std::process::id());
        let file = folder.path().join("shop.db").to_string_lossy().into_owned();
        let server = self.postgres.clone().map(|url| ShopAddress::Server { url, schema });
        let address = server.unwrap_or(ShopAddress::File(file));
        let mut shop = Shop::open(&address).await?;
        shop.set_up(&address, self.seats).await?;
        fixture.set_up("address", &serde_json::to_vec(&address)?).await?;
        fixture.start(self.sellers).await?;

        let mut seen = Seen::default();
        let watched = self.watch(fixture, &mut seen).await;
        let orders = shop.orders().await?;
        shop.remove(&address).await?;
        watched?;

        let oversold = (orders - i64::from(self.seats)).max(0);
        let (stale, retries) = if self.versions { (0, seen.refused) } else { (seen.refused, 0) };
        let holds = orders == i64::from(self.seats) && seen.refused >= seen.pauses;
        let mut line = format!("orders={orders} oversold={oversold} stale_refused={stale}");
        if self.versions {
            line += &format!(" retries={retries}");
        }
        Ok(Verdict::line(holds, line))
    }
}
