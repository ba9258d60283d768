use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

use super::audit::{Books, TrainBook};
use super::office::Killed;

/// The final report: as text by [`Display`], as JSON by [`json`](Self::json).
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) books: Books,
    pub(crate) orders: usize,
    pub(crate) lock: bool,
    pub(crate) killed: Option<Killed>,
    pub(crate) spent: Duration,
}

/// The same for programs.
#[derive(Debug, Serialize)]
struct Json<'a> {
    trains: Vec<JsonTrain<'a>>,
    sold: u64,
    refused: u64,
    oversold: u64,
    orders: usize,
    seconds: f64,
    lost: &'a [u32],
    unbalanced: Vec<&'a str>,
    lock: bool,
    killed: Option<&'a Killed>,
    verdict: String,
}

#[derive(Debug, Serialize)]
struct JsonTrain<'a> {
    train: &'a str,
    seats: u32,
    sold: u64,
    refused: u64,
    oversold: u64,
    left: u32,
    wait_p50_millis: f64,
    wait_p99_millis: f64,
}

impl Report {
    /// One line of JSON.
    pub(crate) fn json(&self) -> serde_json::Result<String> {
        let books = &self.books;
        let json = Json {
            trains: books.trains.iter().map(JsonTrain::of).collect(),
            sold: books.sold(),
            refused: books.refused(),
            oversold: books.oversold(),
            orders: self.orders,
            seconds: tenths(self.spent.as_secs_f64()),
            lost: &books.lost,
            unbalanced: books.unbalanced(),
            lock: self.lock,
            killed: self.killed.as_ref(),
            verdict: self.verdict(),
        };
        serde_json::to_string(&json)
    }

    /// The verdict in plain words.
    fn verdict(&self) -> String {
        let (books, mut words) = (&self.books, Vec::new());
        if books.oversold() > 0 {
            let trains = books.trains.iter().filter(|train| train.oversold() > 0).count();
            words.push(format!("OVERSOLD: {} seats on {trains} trains were sold twice", books.oversold()));
        }
        if !books.lost.is_empty() {
            words.push(format!("LOST: {} orders are not in the ledger", books.lost.len()));
        }
        if !books.unbalanced().is_empty() {
            let trains = books.unbalanced().len();
            words.push(format!("the stock of {trains} trains does not match what was sold"));
        }
        match (words.is_empty(), self.lock, &self.killed) {
            (true, true, None) => "every order was done once, and no seat was sold twice".to_owned(),
            (true, true, Some(killed)) => format!(
                "every order was done once, and no seat was sold twice, though seller {} was killed: \
                 others got its locks and took up {} of its orders",
                killed.seller, killed.taken_up
            ),
            (true, false, _) => "nothing went wrong without the locks, by luck; try more orders".to_owned(),
            (false, true, _) => words.join("; "),
            (false, false, _) => format!("{}; this is a sale without the locks", words.join("; ")),
        }
    }
}

impl Display for Report {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let books = &self.books;
        let mut table = Table::new();
        table.load_style(presets::UTF8_FULL_CONDENSED);
        table.set_header(["train", "seats", "sold", "refused", "oversold", "wait p50", "wait p99"]);
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        for train in &books.trains {
            table.add_row([
                train.train.clone(),
                train.seats.to_string(),
                train.sold.to_string(),
                train.refused.to_string(),
                train.oversold().to_string(),
                format!("{:.0} ms", millis(train.wait(50))),
                format!("{:.0} ms", millis(train.wait(99))),
            ]);
        }
        writeln!(formatter, "{table}")?;
        writeln!(formatter, "{}", self.verdict())?;
        write!(
            formatter,
            "sold={} refused={} oversold={} orders={} seconds={:.1}",
            books.sold(),
            books.refused(),
            books.oversold(),
            self.orders,
            self.spent.as_secs_f64(),
        )
    }
}

impl<'a> JsonTrain<'a> {
    fn of(train: &'a TrainBook) -> Self {
        Self {
            train: &train.train,
            seats: train.seats,
            sold: train.sold,
            refused: train.refused,
            oversold: train.oversold(),
            left: train.left,
            wait_p50_millis: millis(train.wait(50)),
            wait_p99_millis: millis(train.wait(99)),
        }
    }
}

fn millis(duration: Duration) -> f64 {
    tenths(duration.as_secs_f64() * 1_000.0)
}

/// More digits than these say nothing.
fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ticket_office::audit::tests::books;

    fn report(books: Books, lock: bool) -> Report {
        Report { books, orders: 4, lock, killed: None, spent: Duration::from_millis(12_340) }
    }

    #[test]
    fn the_last_line_has_the_sums() {
        let text = report(books(2, 1), true).to_string();
        let mut lines = text.lines().rev();
        assert_eq!(lines.next(), Some("sold=9 refused=2 oversold=0 orders=4 seconds=12.3"));
        assert_eq!(lines.next(), Some("every order was done once, and no seat was sold twice"));
        assert!(
            text.contains("│ A     ┆     5 ┆    4 ┆       2 ┆        0 ┆     2 ms ┆     3 ms │"),
            "{text}"
        );
    }

    #[test]
    fn what_went_wrong_is_said_in_words() {
        let text = report(books(3, 1), false).to_string();
        assert!(text.contains("OVERSOLD: 1 seats on 1 trains were sold twice"), "{text}");
        assert!(text.contains("this is a sale without the locks"), "{text}");
    }

    #[test]
    fn json_says_the_same() {
        let json: serde_json::Value =
            serde_json::from_str(&report(books(2, 1), true).json().unwrap()).unwrap();
        assert_eq!((&json["sold"], &json["refused"], &json["oversold"]), (&9.into(), &2.into(), &0.into()));
        assert_eq!((&json["orders"], &json["seconds"]), (&4.into(), &12.3.into()));
        assert_eq!((&json["trains"][0]["train"], &json["trains"][0]["left"]), (&"A".into(), &1.into()));
    }
}
