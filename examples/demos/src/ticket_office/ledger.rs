use std::collections::BTreeSet;

use futures::{StreamExt, TryStreamExt, stream};
use lockkeeper::error::{PathError, Refusal};
use lockkeeper::znodes::{CreateMode, Version, Znodes};
use lockkeeper::{ConnectionManager, Error, ZnodePath};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::orders::Order;
use crate::fixture::sweep;

/// The number of requests in flight when many nodes are read.
const AT_A_TIME: usize = 64;

/// The state of one sale, in ZooKeeper.
///
/// | node | what it is |
/// |---|---|
/// | `<root>/locks/<train>` | the mutex of the train |
/// | `<root>/desks/<order>` | the mutex of an order, if the trains' locks are of another engine: its
/// transaction |
/// | `<root>/stock/<train>` | how many seats are left, in decimal |
/// | `<root>/sales/<train>/<order>` | an [`Entry`]: the order is done, sold or refused |
///
/// An entry is created in the same transaction that takes its seats from the stock, and a node can be created
/// only once. So an order is done exactly once, however often it is tried and by whomever.
///
/// Reads outlast a broken connection; a write whose answer is lost returns an error to its caller.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    znodes: Znodes,
    root: ZnodePath,
}

/// The result of an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) user: String,
    pub(crate) seats: u32,
    /// False: refused, since there were not enough seats left.
    pub(crate) sold: bool,
    pub(crate) seller: u32,
    /// The fencing token it was written under; empty without a lock.
    pub(crate) token: String,
    /// How long the seller waited for the lock, in microseconds.
    pub(crate) waited: u64,
}

/// The entries of a train in the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    /// The seats left by the stock.
    pub(crate) left: u32,
    /// The entries, with the numbers of their orders.
    pub(crate) entries: Vec<(u32, Entry)>,
}

/// The ledger cannot be read or written.
#[derive(Debug, Error)]
pub(crate) enum LedgerError {
    #[error(transparent)]
    Node(#[from] Error),
    #[error("{path} is missing; were the nodes of this run deleted?")]
    Missing { path: ZnodePath },
    #[error("{path} holds {found:?}; did another program write it?")]
    Garbled { path: ZnodePath, found: String },
}

impl From<PathError> for LedgerError {
    fn from(error: PathError) -> Self {
        Self::Node(error.into())
    }
}

impl Ledger {
    /// The ledger at `root`. Nothing is sent.
    pub(crate) fn new(manager: &ConnectionManager, root: ZnodePath) -> Self {
        Self { znodes: manager.znodes(), root }
    }

    pub(crate) fn root(&self) -> &ZnodePath {
        &self.root
    }

    /// The path of the train's mutex.
    pub(crate) fn lock(&self, train: &str) -> Result<ZnodePath, LedgerError> {
        Ok(self.root.child("locks")?.child(train)?)
    }

    /// The path of the order's own mutex.
    pub(crate) fn desk(&self, order: &Order) -> Result<ZnodePath, LedgerError> {
        Ok(self.root.child("desks")?.child(&order.number.to_string())?)
    }

    /// The node with the number of seats that are left.
    pub(crate) fn stock(&self, train: &str) -> Result<ZnodePath, LedgerError> {
        Ok(self.root.child("stock")?.child(train)?)
    }

    /// The node that says what became of an order.
    pub(crate) fn sale(&self, order: &Order) -> Result<ZnodePath, LedgerError> {
        Ok(self.sales(&order.train)?.child(&order.number.to_string())?)
    }

    fn sales(&self, train: &str) -> Result<ZnodePath, LedgerError> {
        Ok(self.root.child("sales")?.child(train)?)
    }

    /// Creates the nodes of a new sale: every train with all its seats, and nothing sold.
    pub(crate) async fn open(&self, trains: &BTreeSet<&str>, seats: u32) -> Result<(), LedgerError> {
        for part in ["locks", "stock", "sales"] {
            self.znodes.create(&self.root.child(part)?, b"", CreateMode::Persistent).await?;
        }
        for train in trains {
            self.znodes.create(&self.stock(train)?, stock_data(seats), CreateMode::Persistent).await?;
            self.znodes.create(&self.sales(train)?, b"", CreateMode::Persistent).await?;
        }
        Ok(())
    }

    /// How many seats of the train are left.
    pub(crate) async fn left(&self, train: &str) -> Result<u32, LedgerError> {
        Ok(self.left_at_version(train).await?.0)
    }

    /// How many seats of the train are left, with the version of their node.
    pub(crate) async fn left_at_version(&self, train: &str) -> Result<(u32, i32), LedgerError> {
        let path = self.stock(train)?;
        let Some((data, stat)) = self.znodes.read(&path).await? else {
            return Err(LedgerError::Missing { path });
        };
        let left = str::from_utf8(&data).ok().and_then(|text| text.parse().ok());
        left.map(|left| (left, stat.version)).ok_or_else(|| garbled(path, &data))
    }

    /// The result of the order; `None` when it is not done yet.
    pub(crate) async fn entry(&self, order: &Order) -> Result<Option<Entry>, LedgerError> {
        self.entry_at(self.sale(order)?).await
    }

    /// Writes as if no other seller existed: the remaining stock first, then the entry.
    pub(crate) async fn write_without_lock(
        &self,
        order: &Order,
        entry: &Entry,
        left: u32,
    ) -> Result<(), LedgerError> {
        if entry.sold {
            self.znodes.write(&self.stock(&order.train)?, stock_data(left), Version::Any).await?;
        }
        match self.znodes.create(&self.sale(order)?, entry.data(), CreateMode::Persistent).await {
            Err(Error::Refused { refusal: Refusal::NodeExists, .. }) => Ok(()),
            created => created.map(drop).map_err(LedgerError::from),
        }
    }

    /// All that is known of a train.
    pub(crate) async fn page(&self, train: &str) -> Result<Page, LedgerError> {
        let (left, path) = (self.left(train).await?, self.sales(train)?);
        let Some(names) = self.znodes.children(&path).await? else {
            return Err(LedgerError::Missing { path });
        };
        let entries = stream::iter(names).map(|name| self.numbered(&path, name)).buffer_unordered(AT_A_TIME);
        Ok(Page { left, entries: entries.try_collect().await? })
    }

    /// Deletes all nodes of the sale. No seller may be at work any more.
    pub(crate) async fn remove(&self) -> Result<(), LedgerError> {
        Ok(sweep(&self.znodes, self.root.clone()).await?)
    }

    async fn numbered(&self, sales: &ZnodePath, name: String) -> Result<(u32, Entry), LedgerError> {
        let path = sales.child(&name)?;
        let number = name.parse().map_err(|_| garbled(path.clone(), name.as_bytes()))?;
        let entry = self.entry_at(path.clone()).await?;
        Ok((number, entry.ok_or(LedgerError::Missing { path })?))
    }

    async fn entry_at(&self, path: ZnodePath) -> Result<Option<Entry>, LedgerError> {
        match self.znodes.read(&path).await? {
            None => Ok(None),
            Some((data, _)) => serde_json::from_slice(&data).map(Some).map_err(|_| garbled(path, &data)),
        }
    }
}

impl Entry {
    /// The data of its node.
    pub(crate) fn data(&self) -> Vec<u8> {
        serde_json::json!(self).to_string().into_bytes()
    }
}

/// The data of the node of a stock.
pub(crate) fn stock_data(left: u32) -> Vec<u8> {
    left.to_string().into_bytes()
}

fn garbled(path: ZnodePath, data: &[u8]) -> LedgerError {
    LedgerError::Garbled { path, found: String::from_utf8_lossy(data).into_owned() }
}
