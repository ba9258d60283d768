use std::collections::{BTreeMap, VecDeque};
use std::io;

use futures::future::join_all;
use serde::Serialize;
use thiserror::Error;
use tokio::sync::mpsc;

use super::hired::Hired;
use super::ledger::{Ledger, LedgerError};
use super::messages::{Briefing, Done};
use super::orders::Order;
use super::progress::Progress;
use crate::fixture::News;

/// The number of sellers that may leave by themselves before the office fails.
const SPARE: u32 = 3;

/// The office: hires sellers, hands out the orders, and sees to it that every one is done.
///
/// Every seller has some more orders in hand than it can serve at a time, and gets a new one for each it has
/// done. When one leaves, the ledger says which of its orders are done; the others go to the free sellers.
#[derive(Debug)]
pub(crate) struct Office<'a> {
    ledger: &'a Ledger,
    /// The briefing of each seller, without its number.
    briefing: Briefing,
    orders: &'a [Order],
    waiting: VecDeque<&'a Order>,
    done: usize,
    staff: BTreeMap<u32, Hired>,
    /// How many were hired so far, which is the number of the last one.
    hired: u32,
    /// How many may still be hired for one that left.
    spare: u32,
    /// Kill one when this many orders are done.
    kill_at: Option<usize>,
    killed: Option<Killed>,
    news: mpsc::UnboundedReceiver<News<Done>>,
    sender: mpsc::UnboundedSender<News<Done>>,
    progress: Progress,
}

/// The office's record of the seller that it has killed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Killed {
    pub(crate) seller: u32,
    pub(crate) pid: u32,
    /// How many orders were done when it was killed.
    pub(crate) at: usize,
    /// How many orders it had in hand that it had not said to be done.
    pub(crate) in_hand: usize,
    /// How many of these stood in the ledger.
    pub(crate) found_done: usize,
    /// How many others were taken up by other sellers.
    pub(crate) taken_up: usize,
}

/// Why a sale could not be finished.
#[derive(Debug, Error)]
pub(crate) enum OfficeError {
    #[error("cannot start a seller's process: {0}")]
    Hire(#[from] io::Error),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error("the sellers keep leaving, with {done} of {orders} orders done; what they said is above")]
    Deserted { done: usize, orders: usize },
}

impl<'a> Office<'a> {
    /// An office for these orders, without sellers. With `kill`, one seller is killed during the sale.
    pub(crate) fn new(ledger: &'a Ledger, orders: &'a [Order], briefing: Briefing, kill: bool) -> Self {
        let (sender, news) = mpsc::unbounded_channel();
        Self {
            ledger,
            briefing,
            orders,
            waiting: orders.iter().collect(),
            done: 0,
            staff: BTreeMap::new(),
            hired: 0,
            spare: SPARE + u32::from(kill),
            kill_at: kill.then_some(orders.len() * 2 / 5),
            killed: None,
            news,
            sender,
            progress: Progress::of(orders.len()),
        }
    }

    /// Sells until every order is done.
    pub(crate) async fn sell(&mut self, processes: u32) -> Result<(), OfficeError> {
        for _ in 0..processes {
            self.hire().await?;
        }
        while self.done < self.orders.len() {
            self.hand_out().await;
            if self.kill_at.is_some_and(|at| self.done >= at) {
                self.kill()?;
            }
            match self.news.recv().await {
                Some(News::Said { by, what: done }) => {
                    let known = self.staff.get_mut(&by);
                    if known.is_some_and(|seller| seller.in_hand.remove(&done.order)) {
                        self.count_done(done.order, done.sold);
                    }
                }
                Some(News::Left { who }) => self.take_up(who).await?,
                // Not while we have a sender ourselves.
                None => break,
            }
        }
        Ok(())
    }

    /// Dismisses all sellers and waits for their end.
    pub(crate) async fn close(mut self) -> Option<Killed> {
        self.progress.end();
        join_all(self.staff.values_mut().map(|seller| seller.close())).await;
        self.killed
    }

    async fn hire(&mut self) -> Result<(), OfficeError> {
        self.hired += 1;
        let briefing = Briefing { seller: self.hired, ..self.briefing.clone() };
        let hired = Hired::start(self.hired, self.sender.clone())?;
        // Before the next await: an interrupt may drop this future, and every process has to be closed.
        self.staff.entry(self.hired).insert_entry(hired).into_mut().say(&briefing).await;
        Ok(())
    }

    /// Gives orders to the sellers with the fewest, until all have enough.
    async fn hand_out(&mut self) {
        let enough = self.briefing.tasks as usize * 2;
        while let Some(seller) = self.staff.values_mut().min_by_key(|seller| seller.in_hand.len()) {
            if seller.in_hand.len() >= enough {
                return;
            }
            let Some(order) = self.waiting.pop_front() else { return };
            seller.hand(order).await;
        }
    }

    /// Kills the seller with the most orders in hand.
    fn kill(&mut self) -> Result<(), OfficeError> {
        let busiest = self.staff.values_mut().max_by_key(|seller| seller.in_hand.len());
        let Some(seller) = busiest.filter(|seller| !seller.in_hand.is_empty()) else { return Ok(()) };
        seller.kill()?;
        self.kill_at = None;
        self.killed = Some(Killed {
            seller: seller.number,
            pid: seller.pid,
            at: self.done,
            in_hand: 0,
            found_done: 0,
            taken_up: 0,
        });
        let (number, pid) = (seller.number, seller.pid);
        self.progress.note(&format!("seller {number} (process {pid}) is killed with kill -9"));
        Ok(())
    }

    /// Finds out which orders a seller that left has done, and gives the rest to others.
    async fn take_up(&mut self, seller: u32) -> Result<(), OfficeError> {
        let Some(left) = self.staff.get_mut(&seller) else { return Ok(()) };
        left.close().await;
        let orders = std::mem::take(&mut left.in_hand);
        self.staff.remove(&seller);
        let in_hand = orders.len();
        let mut taken_up = 0;
        for number in orders.into_iter().rev() {
            let Some(order) = self.order(number) else { continue };
            match self.ledger.entry(order).await? {
                Some(entry) => self.count_done(number, if entry.sold { entry.seats } else { 0 }),
                None => {
                    self.waiting.push_front(order);
                    taken_up += 1;
                }
            }
        }
        let found_done = in_hand - taken_up;
        if let Some(killed) = self.killed.as_mut().filter(|killed| killed.seller == seller) {
            *killed = Killed { in_hand, found_done, taken_up, ..killed.clone() };
        }
        self.progress.note(&format!(
            "seller {seller} left with {in_hand} orders in hand: {found_done} are in the ledger, \
             {taken_up} go to others"
        ));
        if self.spare == 0 {
            return Err(OfficeError::Deserted { done: self.done, orders: self.orders.len() });
        }
        self.spare -= 1;
        self.hire().await
    }

    fn count_done(&mut self, number: u32, sold: u32) {
        self.done += 1;
        let asked = self.order(number).map_or(0, |order| order.seats);
        self.progress.done(sold, asked);
    }

    /// The orders are in the order of their numbers, from 1.
    fn order(&self, number: u32) -> Option<&'a Order> {
        self.orders.get((number as usize).checked_sub(1)?)
    }
}
