use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

use csv::{Position, ReaderBuilder, StringRecord, Trim};
use lockkeeper::ZnodePath;
use lockkeeper::error::PathError;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The columns an orders file has, in this order.
const COLUMNS: [&str; 3] = ["user", "train", "seats"];

/// More than this is more than one sale: every order becomes a node.
const ORDERS_MAX: usize = 100_000;

/// The order of a customer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Order {
    /// Its number, the position in the file, from 1.
    pub(crate) number: u32,
    pub(crate) user: String,
    pub(crate) train: String,
    pub(crate) seats: u32,
}

/// Why a file of orders cannot be used.
#[derive(Debug, Error)]
pub(crate) enum OrdersError {
    #[error("cannot read the orders in {}: {source}; name a file with --orders", file.display())]
    Unreadable { file: PathBuf, source: io::Error },
    #[error("{} starts with {found:?}; its first line must be user,train,seats", file.display())]
    Columns { file: PathBuf, found: String },
    #[error("{}, line {line}: {problem}", file.display())]
    Line { file: PathBuf, line: u64, problem: Problem },
    #[error("{} has no orders; give it one line for each, as in: Ada Lovelace,ICE-571,2", file.display())]
    Empty { file: PathBuf },
    #[error("{} has more than {ORDERS_MAX} orders; sell them in parts", file.display())]
    TooMany { file: PathBuf },
}

/// The error of a line.
#[derive(Debug, Error)]
pub(crate) enum Problem {
    #[error("{fields} fields where user,train,seats are wanted; put a field that has a comma in quotes")]
    Fields { fields: usize },
    #[error("no {column}; every order needs a user, a train and a number of seats")]
    Missing { column: &'static str },
    #[error("{found:?} is not a number of seats; write a whole number from 1 up")]
    Seats { found: String },
    #[error("a train cannot be called {train:?}, since its name becomes a node: {source}")]
    Train { train: String, source: PathError },
    #[error("not CSV in UTF-8: {0}")]
    Csv(csv::Error),
}

/// Reads the orders in `file`, all of them or none.
pub(crate) fn read(file: &Path) -> Result<Vec<Order>, OrdersError> {
    let text = fs::read(file).map_err(|source| OrdersError::Unreadable { file: file.to_owned(), source })?;
    parse(&text, file)
}

/// The trains that are asked for, in alphabetical order.
pub(crate) fn trains(orders: &[Order]) -> BTreeSet<&str> {
    orders.iter().map(|order| order.train.as_str()).collect()
}

fn parse(text: &[u8], file: &Path) -> Result<Vec<Order>, OrdersError> {
    let at = |position: Option<&Position>, problem| {
        let line = position.map_or(1, |position| line(text, position));
        OrdersError::Line { file: file.to_owned(), line, problem }
    };
    let not_csv = |error: csv::Error| at(error.position().cloned().as_ref(), Problem::Csv(error));
    let mut reader = ReaderBuilder::new().trim(Trim::All).flexible(true).from_reader(text);
    let columns = reader.headers().map_err(not_csv)?;
    if columns.iter().map(|column| column.trim_start_matches('\u{feff}')).ne(COLUMNS) {
        let found = columns.iter().collect::<Vec<_>>().join(",");
        return Err(OrdersError::Columns { file: file.to_owned(), found });
    }
    let mut orders = Vec::new();
    for (number, record) in (1..).zip(reader.records()) {
        let record = record.map_err(not_csv)?;
        orders.push(order(number, &record).map_err(|problem| at(record.position(), problem))?);
        if orders.len() > ORDERS_MAX {
            return Err(OrdersError::TooMany { file: file.to_owned() });
        }
    }
    if orders.is_empty() {
        return Err(OrdersError::Empty { file: file.to_owned() });
    }
    Ok(orders)
}

/// The line of a record. Its position is before the empty lines in front of it, which are no records.
fn line(text: &[u8], position: &Position) -> u64 {
    let start = usize::try_from(position.byte()).unwrap_or(usize::MAX);
    let rest = text.get(start..).unwrap_or_default().iter();
    let empty = rest.take_while(|byte| b"\r\n".contains(byte)).filter(|byte| **byte == b'\n');
    position.line() + empty.count() as u64
}

fn order(number: u32, record: &StringRecord) -> Result<Order, Problem> {
    let mut fields = record.iter();
    let (Some(user), Some(train), Some(seats), None) =
        (fields.next(), fields.next(), fields.next(), fields.next())
    else {
        return Err(Problem::Fields { fields: record.len() });
    };
    for (column, field) in COLUMNS.into_iter().zip(record) {
        if field.is_empty() {
            return Err(Problem::Missing { column });
        }
    }
    let count = seats.parse().ok().filter(|seats| *seats > 0);
    let count = count.ok_or_else(|| Problem::Seats { found: seats.to_owned() })?;
    let node = "/".parse().and_then(|root: ZnodePath| root.child(train));
    node.map_err(|source| Problem::Train { train: train.to_owned(), source })?;
    Ok(Order { number, user: user.to_owned(), train: train.to_owned(), seats: count })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Vec<Order>, OrdersError> {
        parse(text.as_bytes(), Path::new("orders.csv"))
    }

    fn refusal(text: impl AsRef<[u8]>) -> String {
        parse(text.as_ref(), Path::new("orders.csv")).unwrap_err().to_string()
    }

    #[test]
    fn orders_are_numbered_in_the_order_of_the_file() {
        let orders = of("user,train,seats\nAda, ICE-1 ,2\n\n\"Hopper, Grace\",EC 9,1\n").unwrap();
        let grace = Order { number: 2, user: "Hopper, Grace".into(), train: "EC 9".into(), seats: 1 };
        assert_eq!(orders.last(), Some(&grace));
        assert_eq!(trains(&orders).into_iter().collect::<Vec<_>>(), ["EC 9", "ICE-1"]);
    }

    #[test]
    fn a_bad_line_is_named_with_what_to_do() {
        let head = "user,train,seats\nAda,ICE-1,2\n";
        assert!(
            refusal(format!("{head}Bob,ICE-1,none\n")).starts_with("orders.csv, line 3: \"none\" is not")
        );
        assert!(refusal(format!("{head}\nBob,ICE-1,0\n")).contains("line 4: \"0\" is not a number of seats"));
        assert!(refusal(format!("{head}Bob,ICE-1,-1\n")).contains("whole number from 1 up"));
        assert!(refusal(format!("{head}Bob,ICE-1\n")).contains("line 3: 2 fields"));
        assert!(refusal(format!("{head}Hopper, Grace,ICE-1,2\n")).contains("in quotes"));
        assert!(refusal(format!("{head},ICE-1,2\n")).contains("no user"));
        assert!(refusal(format!("{head}Bob,a/b,2\n")).contains("\"a/b\""));
        assert!(
            refusal([head.as_bytes(), b"B\xffb,ICE-1,2\n"].concat()).contains("line 3: not CSV in UTF-8")
        );
    }

    #[test]
    fn a_file_that_is_not_orders_is_refused() {
        assert!(refusal("").contains("must be user,train,seats"));
        assert!(refusal("name,price\na,1\n").contains("starts with \"name,price\""));
        assert!(refusal("user,train,seats\n").contains("has no orders"));
        assert!(read(Path::new("/nowhere/orders.csv")).unwrap_err().to_string().contains("--orders"));
    }

    #[test]
    fn the_sample_is_2000_orders_for_20_trains() {
        let orders = read(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/data/orders.csv"))).unwrap();
        assert_eq!((orders.len(), trains(&orders).len()), (2000, 20));
    }
}
