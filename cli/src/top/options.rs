//! The options of `top`.

use std::time::Duration;

use clap::Args;

use super::row::Sort;
use crate::partial::NODES;
use crate::span;

/// How many directories that are not on the screen a look reads: with 10,000 locks the servers get some 60
/// requests a second.
const BACKGROUND: usize = 100;

#[derive(Debug, Args)]
pub(crate) struct TopOptions {
    /// The path below which the locks are; / for everything
    #[arg(default_value = "/")]
    pub(super) root: String,

    /// Print plain text without terminal control, for pipes and cron
    #[arg(short, long)]
    pub(super) batch: bool,

    /// End after this many looks, with --batch [default: look until a signal]
    #[arg(
        short = 'n',
        long,
        value_name = "COUNT",
        requires = "batch",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub(super) count: Option<u32>,

    /// The first order of the locks
    #[arg(long, value_enum, default_value_t = Sort::Waiters)]
    pub(super) sort: Sort,

    /// How often to look
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = span::interval)]
    pub(super) interval: Duration,

    /// How many of the locks and directories that are not on the screen each look reads
    #[arg(long, value_name = "N", default_value_t = BACKGROUND)]
    pub(super) background: usize,

    /// The greatest number of nodes to read besides those of the contenders and empty directories
    #[arg(long, value_name = "N", default_value_t = NODES)]
    pub(super) nodes: usize,
}

impl TopOptions {
    /// Whether the standard output is a screen.
    pub(crate) fn draws(&self) -> bool {
        !self.batch
    }
}
