use lockkeeper_fence::{FenceError, FencingToken};

use crate::link::Link;

/// What a holder does under its lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Reads the stock in one transaction, and writes an order and the rest of the stock in another one.
    Sell,
    /// Reads the stock in two transactions, as a reader of a read/write lock.
    Look,
}

/// How a step of a holder ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StepEnd {
    Done,
    /// Another transaction is in the way; the holder has rolled back, and begins its transaction again.
    Blocked,
    /// A transaction is committed.
    Committed,
    /// The fence has refused the holder, or nothing is left to sell: the holder ends.
    Refused,
}

/// One holder of the lock, which can be stopped between any two of its requests to the database.
#[derive(Debug)]
pub(crate) struct Holder {
    link: Link,
    begin: &'static [&'static str],
    resource: String,
    pub(crate) token: FencingToken,
    pub(crate) work: Work,
    is_fenced: bool,
    step: usize,
    seats: i64,
    /// What a reader has read in its second transaction.
    seen_again: Option<i64>,
}

/// The requests of both transactions.
pub(crate) const STEPS: usize = 9;
const SECOND: usize = 4;

impl Holder {
    pub(crate) fn new(
        link: Link,
        begin: &'static [&'static str],
        resource: &str,
        token: FencingToken,
        work: Work,
        is_fenced: bool,
    ) -> Self {
        let resource = resource.to_owned();
        Self { link, begin, resource, token, work, is_fenced, step: 0, seats: 0, seen_again: None }
    }

    /// Whether all is committed.
    pub(crate) fn is_done(&self) -> bool {
        self.step == STEPS
    }

    /// Whether its next commit is that of an order.
    pub(crate) fn writes(&self) -> bool {
        self.work == Work::Sell && self.step >= SECOND
    }

    /// Whether the two transactions of a reader have seen different stocks.
    pub(crate) fn saw_a_change(&self) -> bool {
        self.is_done() && self.seen_again.is_some_and(|seats| seats != self.seats)
    }

    pub(crate) fn into_link(self) -> Link {
        self.link
    }

    /// Makes the next request.
    pub(crate) async fn turn(&mut self) -> StepEnd {
        match self.request().await {
            Ok(turn) => {
                self.step += usize::from(turn != StepEnd::Refused);
                if turn == StepEnd::Refused {
                    self.roll_back().await;
                }
                turn
            }
            Err(error) => {
                assert!(is_transient(&error), "{:?} at step {}: {error}", self.link, self.step);
                self.roll_back().await;
                self.step = if self.step >= SECOND { SECOND } else { 0 };
                StepEnd::Blocked
            }
        }
    }

    async fn request(&mut self) -> Result<StepEnd, FenceError> {
        let resource = self.resource.clone();
        match (self.step, self.work) {
            (0 | SECOND, _) => {
                for statement in self.begin {
                    self.run(statement).await?;
                }
            }
            (1 | 5, work) if self.is_fenced => {
                let checked = match work {
                    Work::Sell => self.link.check(&resource, self.token).await,
                    Work::Look => self.link.check_read(&resource, self.token).await,
                };
                match checked {
                    Err(FenceError::Stale(stale)) => {
                        assert!(stale.newer > self.token && stale.token == self.token, "{stale}");
                        return Ok(StepEnd::Refused);
                    }
                    checked => checked?,
                }
            }
            (2, _) => self.seats = self.stock().await?,
            (6, Work::Look) => self.seen_again = Some(self.stock().await?),
            (6, Work::Sell) if self.seats == 0 => return Ok(StepEnd::Refused),
            (6, Work::Sell) => {
                let buyer = self.token.as_u64();
                self.run(&format!("INSERT INTO orders VALUES ('{resource}', {buyer})")).await?;
            }
            (7, Work::Sell) => {
                let left = self.seats - 1;
                self.run(&format!("UPDATE stock SET seats = {left} WHERE resource = '{resource}'")).await?;
            }
            (3 | 8, _) => {
                self.run("COMMIT").await?;
                return Ok(StepEnd::Committed);
            }
            _ => {}
        }
        Ok(StepEnd::Done)
    }

    async fn stock(&mut self) -> Result<i64, FenceError> {
        let query = format!("SELECT seats FROM stock WHERE resource = '{}'", self.resource);
        self.link.number(&query).await.map_err(of_database)
    }

    async fn run(&mut self, statement: &str) -> Result<(), FenceError> {
        self.link.run(statement).await.map_err(of_database)
    }

    async fn roll_back(&mut self) {
        // Where the database has rolled back already, or nothing was begun, that is an error.
        let _ = self.link.run("ROLLBACK").await;
    }
}

/// The errors of the shop's own statements, with what the fence says of such errors of its own.
fn of_database(error: sqlx::Error) -> FenceError {
    let code = error.as_database_error().and_then(|error| error.code()).unwrap_or_default();
    let is_transient = ["55P03", "5", "517", "HY000", "40001"].contains(&code.as_ref());
    FenceError::NotChecked { resource: "shop".into(), is_transient, source: error.into() }
}

fn is_transient(error: &FenceError) -> bool {
    error.is_transient()
}
