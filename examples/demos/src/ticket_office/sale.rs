use std::time::Duration;

use lockkeeper::error::{Refusal, TxnError};
use lockkeeper::znodes::Version;
use lockkeeper::{ConnectionManager, Error, Mutex};
use lockkeeper_lock::{ErrorKind, Lock, LockError};
use thiserror::Error;
use tokio::time::{Instant, sleep};

use super::ledger::{Entry, Ledger, LedgerError, stock_data};
use super::orders::Order;
use crate::fixture::{Locks, PAUSE};

/// The first write of a sale's transaction: the entry.
const ENTRY: usize = 0;

/// Serves orders, one at a time and each one once.
#[derive(Clone, Debug)]
pub(crate) struct Counter {
    pub(crate) seller: u32,
    pub(crate) manager: ConnectionManager,
    pub(crate) locks: Locks,
    pub(crate) ledger: Ledger,
    pub(crate) lock: bool,
    pub(crate) think: Duration,
}

/// An order could not be served.
#[derive(Debug, Error)]
pub(crate) enum SaleError {
    #[error(transparent)]
    Lock(#[from] Error),
    #[error(transparent)]
    AnyLock(#[from] LockError),
    #[error(transparent)]
    Txn(#[from] TxnError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

impl Counter {
    /// Fulfils the order, or refuses it; returns the entry in the ledger.
    ///
    /// A lost lock, a new session, a lost answer: after each of these it starts over, for as long as it
    /// takes. That is safe, as the ledger takes every order only once.
    pub(crate) async fn serve(&self, order: &Order) -> Result<Entry, SaleError> {
        let mut waited = Duration::ZERO;
        loop {
            let served = match &self.locks {
                _ if !self.lock => self.without_lock(order).await,
                Locks::Zookeeper(_) => self.under_lock(order, &mut waited).await,
                other => match other.mutex(&self.ledger.lock(&order.train)?) {
                    Ok(lock) => self.under_any_lock(&*lock, order, &mut waited).await,
                    Err(error) => Err(error.into()),
                },
            };
            match served {
                Err(error) if error.is_passing() => sleep(PAUSE).await,
                served => return served,
            }
        }
    }

    /// Read the stock, think, sell: no other seller sells for this train meanwhile.
    async fn under_lock(&self, order: &Order, waited: &mut Duration) -> Result<Entry, SaleError> {
        let mutex = Mutex::new(&self.manager, self.ledger.lock(&order.train)?)?;
        let asked = Instant::now();
        let acquired = mutex.acquire().await;
        *waited += asked.elapsed();
        let guard = acquired?;

        let left = self.ledger.left(&order.train).await?;
        sleep(self.think).await;
        let remaining = left.checked_sub(order.seats);
        let token = guard.fencing_token().to_string();
        let entry = self.entry(order, remaining.is_some(), token, *waited);

        // All or nothing, and nothing once the lock is lost. The stock is set whatever its version: it is the
        // lock that keeps others out.
        let mut txn = guard.txn().create(self.ledger.sale(order)?, entry.data());
        if let Some(remaining) = remaining {
            txn = txn.set(self.ledger.stock(&order.train)?, stock_data(remaining), Version::Any);
        }
        match txn.commit().await {
            Ok(_) => {
                // The sale is valid even if the release fails: lockkeeper continues to delete the node.
                let _ = guard.release().await;
                Ok(entry)
            }
            // It had been done: by us, in a transaction whose answer was lost, or by a seller that died
            // since.
            Err(TxnError::Refused { index: ENTRY, refusal: Refusal::NodeExists, .. }) => {
                let path = self.ledger.sale(order)?;
                Ok(self.ledger.entry(order).await?.ok_or(LedgerError::Missing { path })?)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The same under a lock of any engine. No transaction depends on such a lock. So the sale's transaction,
    /// which is that of the order's own mutex, checks that nothing was sold since the stock was read: what a
    /// paused holder commits late is refused.
    async fn under_any_lock(
        &self,
        lock: &dyn Lock,
        order: &Order,
        waited: &mut Duration,
    ) -> Result<Entry, SaleError> {
        let asked = Instant::now();
        let acquired = lock.acquire().await;
        *waited += asked.elapsed();
        let guard = acquired?;
        let token = guard.fencing_token().to_string();
        let entry = guard
            .run(async {
                if let Some(entry) = self.ledger.entry(order).await? {
                    return Ok(entry);
                }
                let (left, version) = self.ledger.left_at_version(&order.train).await?;
                sleep(self.think).await;
                let remaining = left.checked_sub(order.seats);
                let entry = self.entry(order, remaining.is_some(), token, *waited);
                let desk = Mutex::new(&self.manager, self.ledger.desk(order)?)?.acquire().await?;
                let stock = stock_data(remaining.unwrap_or(left));
                let sale = desk.txn().create(self.ledger.sale(order)?, entry.data());
                sale.set(self.ledger.stock(&order.train)?, stock, version).commit().await?;
                let _ = desk.release().await;
                Ok::<_, SaleError>(entry)
            })
            .await??;
        // The sale is valid even if the release fails: it continues in the background.
        let _ = guard.release().await;
        Ok(entry)
    }

    /// The same without the lock: between the read and the write, the other sellers do the same.
    async fn without_lock(&self, order: &Order) -> Result<Entry, SaleError> {
        if let Some(entry) = self.ledger.entry(order).await? {
            return Ok(entry);
        }
        let left = self.ledger.left(&order.train).await?;
        sleep(self.think).await;
        let remaining = left.checked_sub(order.seats);
        let entry = self.entry(order, remaining.is_some(), String::new(), Duration::ZERO);
        self.ledger.write_without_lock(order, &entry, remaining.unwrap_or(left)).await?;
        Ok(entry)
    }

    fn entry(&self, order: &Order, sold: bool, token: String, waited: Duration) -> Entry {
        let waited = u64::try_from(waited.as_micros()).unwrap_or(u64::MAX);
        Entry { user: order.user.clone(), seats: order.seats, sold, seller: self.seller, token, waited }
    }
}

impl SaleError {
    /// Whether trying again can help. After an unknown outcome, too: a sale that was made is found by its
    /// entry.
    fn is_passing(&self) -> bool {
        match self {
            Self::Lock(error) | Self::Ledger(LedgerError::Node(error)) => {
                error.is_transient() || error.outcome_unknown()
            }
            Self::AnyLock(error) => {
                matches!(error.kind(), ErrorKind::Timeout | ErrorKind::Disconnected | ErrorKind::Lost)
            }
            // Another seller sold while this one was paused: the order is read anew.
            Self::Txn(TxnError::Refused { refusal: Refusal::BadVersion | Refusal::NodeExists, .. }) => true,
            Self::Txn(error) => error.is_transient() || error.outcome_unknown(),
            Self::Ledger(_) => false,
        }
    }
}
