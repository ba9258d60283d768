use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, value_parser};

use crate::fixture::{Common, EngineOptions};

/// Sells railway tickets in several processes at once, with one lock per train.
#[derive(Clone, Debug, Parser)]
#[command(name = "ticket_office", after_help = AFTER_HELP)]
pub(crate) struct Options {
    /// The orders, as CSV with the columns user,train,seats [default: the sample, 2,000 orders for 20 trains]
    #[arg(
        long,
        value_name = "FILE",
        default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/data/orders.csv"),
        hide_default_value = true
    )]
    pub(crate) orders: PathBuf,

    /// How many seats every train has
    #[arg(
        long,
        value_name = "N",
        default_value_t = 250,
        value_parser = value_parser!(u32).range(1..=1_000_000)
    )]
    pub(crate) seats: u32,

    /// How many processes sell, each with a session of its own
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = value_parser!(u32).range(1..=64))]
    pub(crate) processes: u32,

    /// How many orders a process serves at a time
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = value_parser!(u32).range(1..=256))]
    pub(crate) tasks: u32,

    /// How long a seller takes between reading what is left and selling, in milliseconds
    #[arg(
        long,
        value_name = "MILLISECONDS",
        default_value_t = 25,
        value_parser = value_parser!(u64).range(0..=10_000)
    )]
    pub(crate) think: u64,

    /// Sell without the locks, to see what they are good for
    #[arg(long)]
    pub(crate) no_lock: bool,

    /// Kill one of the processes (kill -9) when two fifths of the orders are done
    #[arg(long)]
    pub(crate) kill: bool,

    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Leave the nodes of this run in the ensemble, and say where they are
    #[arg(long, requires = "connect")]
    pub(crate) keep: bool,

    #[command(flatten)]
    pub(crate) engine: EngineOptions,

    #[command(flatten)]
    pub(crate) common: Common,
}

const AFTER_HELP: &str = "\
Sold, refused and oversold count seats: sold + refused is what all orders asked for together.

Exit code: 0 all is well; 1 a seat was sold twice, or an order was lost; 2 the input is wrong; \
3 the sale could not
be finished; 130 interrupted (Ctrl-C).";

impl Options {
    /// Between reading what is left and selling.
    pub(crate) fn think(&self) -> Duration {
        Duration::from_millis(self.think)
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn refusal(arguments: &[&str]) -> String {
        let line = ["ticket_office"].iter().chain(arguments);
        Options::try_parse_from(line).unwrap_err().to_string()
    }

    #[test]
    fn the_command_line_is_consistent() {
        Options::command().debug_assert();
    }

    #[test]
    fn numbers_that_make_no_sense_are_refused() {
        assert!(refusal(&["--seats", "0"]).contains("1..=1000000"));
        assert!(refusal(&["--processes", "0"]).contains("1..=64"));
        assert!(refusal(&["--processes", "65"]).contains("1..=64"));
        assert!(refusal(&["--tasks", "0"]).contains("1..=256"));
        assert!(refusal(&["--session-timeout", "0"]).contains("1..=3600"));
        assert!(refusal(&["--keep"]).contains("--connect"));
    }
}
