use std::collections::BTreeMap;
use std::time::Duration;

use super::ledger::{Entry, Ledger, LedgerError, Page};
use super::orders::{Order, trains};

/// The result of a sale, by the ledger alone. In seats, except `lost`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Books {
    pub(crate) trains: Vec<TrainBook>,
    /// The orders that are not in the ledger, or not as they were given.
    pub(crate) lost: Vec<u32>,
}

/// The result of a train.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TrainBook {
    pub(crate) train: String,
    pub(crate) seats: u32,
    /// By the stock.
    pub(crate) left: u32,
    /// By the entries.
    pub(crate) sold: u64,
    pub(crate) refused: u64,
    /// How long each order waited for the lock, in ascending order.
    pub(crate) waits: Vec<Duration>,
}

impl Books {
    /// Reads the ledger.
    pub(crate) async fn read(ledger: &Ledger, orders: &[Order], seats: u32) -> Result<Self, LedgerError> {
        let mut pages = BTreeMap::new();
        for train in trains(orders) {
            pages.insert(train.to_owned(), ledger.page(train).await?);
        }
        Ok(Self::of(orders, seats, &pages))
    }

    fn of(orders: &[Order], seats: u32, pages: &BTreeMap<String, Page>) -> Self {
        let entries = |train: &str| pages.get(train).into_iter().flat_map(|page| &page.entries);
        let numbered: BTreeMap<(&str, u32), &Entry> = pages
            .keys()
            .flat_map(|train| entries(train).map(|(number, entry)| ((train.as_str(), *number), entry)))
            .collect();
        let was_kept = |order: &&Order| {
            let entry = numbered.get(&(order.train.as_str(), order.number));
            entry.is_some_and(|entry| entry.seats == order.seats && entry.user == order.user)
        };
        let lost = orders.iter().filter(|order| !was_kept(order)).map(|order| order.number).collect();
        let trains = pages.iter().map(|(train, page)| TrainBook::of(train, seats, page)).collect();
        Self { trains, lost }
    }

    pub(crate) fn sold(&self) -> u64 {
        self.trains.iter().map(|train| train.sold).sum()
    }

    pub(crate) fn refused(&self) -> u64 {
        self.trains.iter().map(|train| train.refused).sum()
    }

    pub(crate) fn oversold(&self) -> u64 {
        self.trains.iter().map(TrainBook::oversold).sum()
    }

    /// The trains whose stock and entries contradict each other.
    pub(crate) fn unbalanced(&self) -> Vec<&str> {
        let unbalanced = self.trains.iter().filter(|train| !train.is_balanced());
        unbalanced.map(|train| train.train.as_str()).collect()
    }

    /// Whether no seat was sold twice, no order lost, and the stock agrees with the entries.
    pub(crate) fn is_sound(&self) -> bool {
        self.oversold() == 0 && self.lost.is_empty() && self.unbalanced().is_empty()
    }
}

impl TrainBook {
    fn of(train: &str, seats: u32, page: &Page) -> Self {
        let count = |sold: bool| {
            let entries = page.entries.iter().filter(|(_, entry)| entry.sold == sold);
            entries.map(|(_, entry)| u64::from(entry.seats)).sum()
        };
        let mut waits: Vec<Duration> =
            page.entries.iter().map(|(_, entry)| Duration::from_micros(entry.waited)).collect();
        waits.sort_unstable();
        Self {
            train: train.to_owned(),
            seats,
            left: page.left,
            sold: count(true),
            refused: count(false),
            waits,
        }
    }

    /// The number of sold seats that do not exist.
    pub(crate) fn oversold(&self) -> u64 {
        self.sold.saturating_sub(u64::from(self.seats))
    }

    /// The wait that `percent` of the orders did not exceed (nearest rank).
    pub(crate) fn wait(&self, percent: usize) -> Duration {
        let rank = (self.waits.len() * percent).div_ceil(100).max(1);
        self.waits.get(rank - 1).copied().unwrap_or_default()
    }

    fn is_balanced(&self) -> bool {
        self.sold + u64::from(self.left) == u64::from(self.seats)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn order(number: u32, train: &str, seats: u32) -> Order {
        Order { number, user: format!("user {number}"), train: train.to_owned(), seats }
    }

    fn entry(order: &Order, sold: bool) -> (u32, Entry) {
        let entry = Entry {
            user: order.user.clone(),
            seats: order.seats,
            sold,
            seller: 1,
            token: "0x1.0".to_owned(),
            waited: u64::from(order.number) * 1_000,
        };
        (order.number, entry)
    }

    /// Two trains of 5 seats; on the first, `sold` of three orders for 2 seats each were sold.
    pub(crate) fn books(sold: usize, left: u32) -> Books {
        let orders = [order(1, "A", 2), order(2, "A", 2), order(3, "A", 2), order(4, "B", 5)];
        let [first @ .., last] = &orders;
        let entries = first.iter().enumerate().map(|(index, order)| entry(order, index < sold)).collect();
        let pages = BTreeMap::from([
            ("A".to_owned(), Page { left, entries }),
            ("B".to_owned(), Page { left: 0, entries: vec![entry(last, true)] }),
        ]);
        Books::of(&orders, 5, &pages)
    }

    #[test]
    fn sold_refused_and_left_are_counted_in_seats() {
        let books = books(2, 1);
        assert_eq!((books.sold(), books.refused(), books.oversold()), (9, 2, 0));
        assert!(books.is_sound());
    }

    #[test]
    fn seats_sold_beyond_those_there_are_oversold() {
        let books = books(3, 1);
        assert_eq!((books.sold(), books.oversold()), (11, 1));
        assert!(!books.is_sound());
    }

    #[test]
    fn a_stock_that_the_entries_do_not_explain_is_unbalanced() {
        let books = books(2, 3);
        assert_eq!((books.oversold(), books.unbalanced()), (0, vec!["A"]));
        assert!(!books.is_sound());
    }

    #[test]
    fn an_order_without_its_entry_is_lost() {
        let orders = [order(1, "A", 2), order(2, "A", 2), order(3, "A", 1)];
        let mut changed = entry(&orders[1], true);
        changed.1.seats = 1;
        let page = Page { left: 2, entries: vec![entry(&orders[0], true), changed] };
        let books = Books::of(&orders, 5, &BTreeMap::from([("A".to_owned(), page)]));
        assert_eq!(books.lost, [2, 3]);
        assert!(!books.is_sound());
    }

    #[test]
    fn quantiles_of_waits_are_taken_by_nearest_rank() {
        let mut train = books(2, 1).trains.remove(0);
        assert_eq!(train.wait(50), Duration::from_millis(2));
        train.waits = (1..=200).map(Duration::from_millis).collect();
        assert_eq!(
            (train.wait(50), train.wait(99)),
            (Duration::from_millis(100), Duration::from_millis(198))
        );
        train.waits.clear();
        assert_eq!(train.wait(99), Duration::ZERO);
    }
}
