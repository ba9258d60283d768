//! Transfers between accounts, in all directions at once, while processes are killed; no money is lost.
//!
//! A transfer needs two accounts. A [`MultiLock`] takes both, whatever order they are named in: two transfers
//! in opposite directions do not wait for each other for ever. Both balances are written by one
//! `guard.txn()`: both or neither, and neither once a lock is lost. Each transfer has an id, and `once()`
//! commits it once, however often it is tried. With `--no-lock` money appears and disappears.
//!
//! `cargo run --example transfer`, or `-- --no-lock`, or `-- --connect host:port,…`

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, value_parser};
use lockkeeper::znodes::Version;
use lockkeeper::{ConnectionManager, Error, MultiLock, MultiLockGuard, Mutex, ZnodePath};
use lockkeeper_demos::fixture::{
    Common, Example, Failure, Fixture, Verdict, Worker, patiently, patiently_once, play,
};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

/// Transfers money between accounts in several processes at once, some of which are killed; none is lost.
#[derive(Debug, Parser)]
#[command(name = "transfer")]
struct Transfer {
    /// How many accounts there are
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = value_parser!(u32).range(2..=1_000))]
    accounts: u32,

    /// How many processes transfer
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = value_parser!(u32).range(1..=64))]
    processes: u32,

    /// How many of them are killed (kill -9) in the middle of a transfer; another one replaces each
    #[arg(long, value_name = "N", default_value_t = 2)]
    kills: u32,

    /// For how long, in seconds
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = value_parser!(u64).range(1..=3_600))]
    seconds: u64,

    /// Transfer without the locks, to see what they are good for
    #[arg(long)]
    no_lock: bool,

    #[command(flatten)]
    common: Common,
}

/// Between reading the balances and writing them.
const THINK: Duration = Duration::from_millis(2);

/// One marker for each transfer that was done. They are deleted with the run.
const DONE: &str = "done";

/// One node for each commit of a transfer.
const RECEIPTS: &str = "receipts";

/// On every account at the beginning.
const PAID_IN: i64 = 1_000;

/// The data of an account's node.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Account {
    balance: i64,
    /// How many transfers from here were done: counted by the transaction that does them.
    sent: u64,
}

/// A process is in the middle of a transfer: it has read both balances and written neither.
#[derive(Debug, Serialize, Deserialize)]
struct InTheMiddle;

fn main() -> ExitCode {
    play::<Transfer>()
}

impl Transfer {
    /// Transfers some money; `from` and `to` are in no order.
    ///
    /// Tried again when a lock was lost or when the answer to the commit was: the marker of the transfer is
    /// found then, if an earlier try was committed. Each commit also leaves a receipt, by which the audit
    /// sees a transfer that was done twice.
    async fn transfer(
        &self,
        worker: &Worker,
        id: Uuid,
        (from, to): (u32, u32),
        amount: i64,
    ) -> Result<(), Failure> {
        let (from, to) = (account(from), account(to));
        let guard = lock_all(worker.manager(), [worker.path(&from)?, worker.path(&to)?]).await?;
        let (payer, payee) = (read(worker, &from).await?, read(worker, &to).await?);
        worker.tell(&InTheMiddle)?;
        sleep(THINK).await;
        if let Some((payer, payee)) = moved(payer, payee, amount) {
            let transfer = guard
                .txn()
                .set(worker.path(&from)?, data(payer), Version::Any)
                .set(worker.path(&to)?, data(payee), Version::Any)
                .create_sequential(worker.path(&format!("{RECEIPTS}/{id}-"))?, "")
                .once(worker.path(&format!("{DONE}/{id}"))?);
            transfer.commit().await.map_err(Error::from)?;
        }
        // The transfer is done even if the release fails: lockkeeper continues to delete the node.
        let _ = guard.release().await;
        Ok(())
    }

    /// The same without the locks.
    async fn transfer_without_lock(
        &self,
        worker: &Worker,
        from: u32,
        to: u32,
        amount: i64,
    ) -> Result<(), Failure> {
        let (from, to) = (account(from), account(to));
        let (payer, payee) = (read(worker, &from).await?, read(worker, &to).await?);
        worker.tell(&InTheMiddle)?;
        sleep(THINK).await;
        if let Some((payer, payee)) = moved(payer, payee, amount) {
            worker.znodes().write(&worker.path(&from)?, data(payer), Version::Any).await?;
            worker.znodes().write(&worker.path(&to)?, data(payee), Version::Any).await?;
        }
        Ok(())
    }

    /// The ids of all receipts.
    async fn receipts(fixture: &Fixture<InTheMiddle>) -> Result<Vec<String>, Failure> {
        let receipts = fixture.path(RECEIPTS)?;
        let znodes = fixture.znodes();
        let names = znodes.children(&receipts).await?.unwrap_or_default();
        Ok(names.into_iter().filter_map(|name| Some(name.rsplit_once('-')?.0.to_owned())).collect())
    }

    /// All accounts while all of them are locked: no process, dead or alive, has a transfer in progress.
    async fn audit(&self, fixture: &Fixture<InTheMiddle>) -> Result<Vec<Account>, Failure> {
        let paths = (0..self.accounts).map(|number| fixture.path(&account(number)));
        let paths = paths.collect::<Result<Vec<ZnodePath>, Error>>()?;
        let guard = lock_all(fixture.manager(), paths).await?;
        let mut accounts = Vec::new();
        for number in 0..self.accounts {
            accounts.push(serde_json::from_slice(&fixture.read(&account(number)).await?)?);
        }
        // All was read under the locks, even if the release fails.
        let _ = guard.release().await;
        Ok(accounts)
    }
}

impl Example for Transfer {
    type News = InTheMiddle;

    /// The accounts of a killed process are free again after this and a tick.
    const SESSION: Duration = Duration::from_millis(1_500);

    fn common(&self) -> &Common {
        &self.common
    }

    async fn work(&self, worker: &Worker) -> Result<(), Failure> {
        loop {
            let from = rand::random_range(0..self.accounts);
            let to = (from + rand::random_range(1..self.accounts)) % self.accounts;
            let amount = rand::random_range(1..=100);
            if self.no_lock {
                patiently(|| self.transfer_without_lock(worker, from, to, amount)).await?;
            } else {
                // Chosen before the first try, and kept for all.
                let id = Uuid::new_v4();
                patiently_once(|| self.transfer(worker, id, (from, to), amount)).await?;
            }
        }
    }

    async fn lead(&self, fixture: &mut Fixture<InTheMiddle>) -> Result<Verdict, Failure> {
        for number in 0..self.accounts {
            fixture.set_up(&account(number), &data(Account { balance: PAID_IN, sent: 0 })).await?;
        }
        fixture.set_up(RECEIPTS, b"").await?;
        fixture.start(self.processes).await?;
        let how = if self.no_lock { "without locks" } else { "under a lock of two accounts" };
        println!("{} processes transfer between {} accounts, {how}", self.processes, self.accounts);

        let all = Duration::from_secs(self.seconds);
        let begun = Instant::now();
        let mut killed = 0;
        while begun.elapsed() < all || killed < self.kills {
            // Evenly over the time, and each while it is in the middle of a transfer.
            let due = all * (killed + 1) / (self.kills + 1);
            let Some((process, InTheMiddle)) = fixture.next().await? else { break };
            if begun.elapsed() >= due && killed < self.kills {
                fixture.kill(process)?;
                killed += 1;
                println!("process {process} is killed in the middle of a transfer");
                fixture.start(1).await?;
            }
        }
        fixture.close().await;

        let accounts = self.audit(fixture).await?;
        for (number, Account { balance, sent }) in accounts.iter().enumerate() {
            println!("account {number} has {balance}, after sending {sent} times");
        }
        let (before, after) =
            (PAID_IN * i64::from(self.accounts), accounts.iter().map(|of| of.balance).sum::<i64>());
        let transfers: u64 = accounts.iter().map(|account| account.sent).sum();
        let receipts = Self::receipts(fixture).await?;
        let ids: BTreeSet<&String> = receipts.iter().collect();
        let twice = receipts.len() - ids.len();
        // Without the locks there are no receipts.
        let is_accounted = self.no_lock || usize::try_from(transfers).is_ok_and(|all| all == ids.len());
        Ok(Verdict::of(
            before == after && transfers > 0 && twice == 0 && is_accounted,
            format!(
                "{transfers} transfers, {twice} done twice, {killed} processes killed, {before} in all \
                 before and {after} after"
            ),
        ))
    }
}

fn account(number: u32) -> String {
    format!("accounts/{number}")
}

/// Takes the mutexes of the accounts in these nodes, in whichever order they are given. A mutex has a path of
/// its own, since it needs a directory without other nodes.
async fn lock_all(
    manager: &ConnectionManager,
    accounts: impl IntoIterator<Item = ZnodePath>,
) -> Result<MultiLockGuard, Error> {
    let mut all = MultiLock::builder();
    for account in accounts {
        all = all.lock(&Mutex::new(manager, format!("{account}-lock"))?);
    }
    Ok(all.build()?.acquire().await?)
}

async fn read(worker: &Worker, name: &str) -> Result<Account, Failure> {
    let read = worker.znodes().read(&worker.path(name)?).await?;
    let data = read.map(|(data, _)| data).unwrap_or_default();
    Ok(serde_json::from_slice(&data)?)
}

/// Both accounts afterwards; `None` if the payer has not got so much.
fn moved(payer: Account, payee: Account, amount: i64) -> Option<(Account, Account)> {
    let payer = Account { balance: payer.balance - amount, sent: payer.sent + 1 };
    let payee = Account { balance: payee.balance + amount, ..payee };
    (payer.balance >= 0).then_some((payer, payee))
}

fn data(account: Account) -> Vec<u8> {
    serde_json::json!(account).to_string().into_bytes()
}
