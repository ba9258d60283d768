//! Batch mode: plain text, for pipes and cron.

use std::time::Duration;

use super::columns;
use super::reader::{Look, Reader};
use super::row::Sort;
use super::words::{COLUMNS, cells, head, headline, partial};
use crate::exit::{Exit, Failure};
use crate::inspect::print::now;
use crate::output::{say, warn};

/// How often to look, and in which order to print.
#[derive(Clone, Copy, Debug)]
pub(super) struct Batch {
    /// The number of looks. `None` until the process is ended.
    pub(super) count: Option<u32>,
    pub(super) interval: Duration,
    pub(super) sort: Sort,
}

impl Batch {
    /// Prints every lock at each look. A look that fails ends the command, unless it looks without an end.
    pub(super) async fn run(self, root: &str, mut reader: Reader) -> Result<Exit, Failure> {
        let mut looks = 0;
        loop {
            match reader.all().await {
                Ok(look) => say(&self.text(root, look))?,
                Err(error) if self.count.is_none() => warn(format_args!("{} {error}", now())),
                Err(error) => return Err(error.into()),
            }
            looks += 1;
            if self.count.is_some_and(|count| looks >= count) {
                return Ok(Exit::SUCCESS);
            }
            tokio::time::sleep(self.interval).await;
        }
    }

    /// A line for each lock, and an empty one at the end.
    fn text(self, root: &str, look: Look) -> String {
        let mut rows = look.rows;
        self.sort.arrange(&mut rows);
        let more: Vec<String> = partial(look.partial.as_ref()).into_iter().collect();
        let mut text = headline(root, &rows, 0, self.sort, &more);
        let table: Vec<[String; COLUMNS]> =
            std::iter::once(head(self.sort)).chain(rows.iter().map(cells)).collect();
        let width = |column: usize| {
            let cells = table.iter().filter_map(|row| row.get(column));
            cells.map(|cell| columns::width(cell)).max().unwrap_or_default()
        };
        let widths: [usize; COLUMNS] = std::array::from_fn(width);
        for row in &table {
            text.push('\n');
            for (cell, width) in row.iter().zip(widths) {
                text.push_str(cell);
                text.push_str(&" ".repeat(width.saturating_sub(columns::width(cell)) + 2));
            }
            text.truncate(text.trim_end().len());
        }
        text.push('\n');
        text
    }
}
