//! All messages that the proxies have seen, in order.

use std::collections::BTreeMap;
use std::ops::Deref;

use super::{Message, Record};
use crate::wire::OpCode;

/// The messages of one or several proxies, in the order in which they passed. It derefs to a slice of
/// [`Record`]s.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    records: Vec<Record>,
}

impl Log {
    /// The requests that callers made: pings and handshakes are the client's own affair.
    pub fn requests(&self) -> impl Iterator<Item = &Record> {
        let own = [OpCode::Ping, OpCode::Connect];
        self.records
            .iter()
            .filter(move |record| record.message == Message::Request && !own.contains(&record.op))
    }

    /// The operations of [`Log::requests`]: `assert_eq!(log.ops(), [OpCode::Create2, OpCode::GetChildren2])`.
    #[must_use]
    pub fn ops(&self) -> Vec<OpCode> {
        self.requests().map(|record| record.op).collect()
    }

    /// How many requests of a kind were made, whichever kind.
    #[must_use]
    pub fn count(&self, op: OpCode) -> usize {
        self.records.iter().filter(|record| record.message == Message::Request && record.op == op).count()
    }

    /// How many requests of each kind each session made, pings and handshakes included.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<(i64, OpCode), usize> {
        let mut counts = BTreeMap::new();
        for record in self.records.iter().filter(|record| record.message == Message::Request) {
            *counts.entry((record.session, record.op)).or_default() += 1;
        }
        counts
    }

    /// The reply to a request, if it has come by.
    #[must_use]
    pub fn reply_to(&self, request: &Record) -> Option<&Record> {
        let same = |reply: &&Record| reply.connection == request.connection && reply.xid == request.xid;
        let later =
            self.records.iter().filter(|record| record.at > request.at && record.message == Message::Reply);
        later.into_iter().find(same)
    }

    pub(crate) fn push(&mut self, record: Record) {
        self.records.push(record);
    }
}

impl Deref for Log {
    type Target = [Record];

    fn deref(&self) -> &[Record] {
        &self.records
    }
}
