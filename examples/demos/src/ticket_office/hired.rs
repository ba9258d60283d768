use std::collections::BTreeSet;
use std::io;
use std::ops::{Deref, DerefMut};

use tokio::sync::mpsc;

use super::messages::Done;
use super::orders::Order;
use crate::fixture::{News, Process};

/// A seller's process, as the office has it.
#[derive(Debug)]
pub(crate) struct Hired {
    /// The orders given to it that it has not said to be done.
    pub(crate) in_hand: BTreeSet<u32>,
    process: Process,
}

impl Hired {
    /// Starts a process of this same program.
    pub(crate) fn start(number: u32, news: mpsc::UnboundedSender<News<Done>>) -> io::Result<Self> {
        Ok(Self { in_hand: BTreeSet::new(), process: Process::start(number, [], news)? })
    }

    /// Gives it an order.
    pub(crate) async fn hand(&mut self, order: &Order) {
        self.in_hand.insert(order.number);
        self.process.say(order).await;
    }
}

impl Deref for Hired {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.process
    }
}

impl DerefMut for Hired {
    fn deref_mut(&mut self) -> &mut Process {
        &mut self.process
    }
}
