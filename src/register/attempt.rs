//! The transaction of one attempt: pure.

use super::rule::{AttemptPart, Basis};
use super::writer::WriterNode;
use crate::wire::{CreateMode, WriteOp};

/// The version that ZooKeeper takes for "any version". A node whose version has overflowed reaches it once in
/// 2³² writes (before ZOOKEEPER-4743).
const ANY: i32 = -1;

/// The operations of one attempt.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) operations: Vec<WriteOp>,
    parts: Vec<AttemptPart>,
}

impl Attempt {
    /// Writes `data` to the node at `path` if it is the one of `basis`, and `number` to the writer node. The
    /// operation on the writer node comes before every condition on an existing node, so its refusal is the
    /// one that the servers report.
    pub(super) fn new(path: &str, basis: &Basis, data: &[u8], writer: &WriterNode, number: u64) -> Self {
        let mut attempt = Self { operations: Vec::new(), parts: Vec::new() };
        let set =
            |data: &[u8], version| WriteOp::SetData { path: path.to_owned(), data: data.to_owned(), version };
        let version = match basis {
            Some(content) => {
                attempt.add(AttemptPart::Writer, writer.operation(number));
                content.version
            }
            None => {
                let (path, mode) = (path.to_owned(), CreateMode::Persistent);
                attempt.add(AttemptPart::Node, WriteOp::Create { path, data: Vec::new(), mode });
                attempt.add(AttemptPart::Writer, writer.operation(number));
                // The create has no stat in its answer before 3.8.2 (ZOOKEEPER-4026), the write has.
                0
            }
        };
        if version == ANY {
            // No condition can name this version. So the condition comes behind the write, in the same
            // transaction: the version after −1 is 0.
            attempt.add(AttemptPart::Node, set(data, None));
            attempt.add(AttemptPart::Node, WriteOp::Check { path: path.to_owned(), version: Some(0) });
        } else {
            attempt.add(AttemptPart::Node, set(data, Some(version)));
        }
        attempt
    }

    fn add(&mut self, part: AttemptPart, operation: WriteOp) {
        self.operations.push(operation);
        self.parts.push(part);
    }

    /// The node that the operation with this index is about.
    pub(super) fn part(&self, index: usize) -> AttemptPart {
        self.parts.get(index).copied().unwrap_or(AttemptPart::Node)
    }

    /// The index of the write of the node.
    pub(super) fn write_index(&self) -> usize {
        let is_write = |(part, operation): (&AttemptPart, &WriteOp)| {
            *part == AttemptPart::Node && matches!(operation, WriteOp::SetData { .. })
        };
        self.parts.iter().zip(&self.operations).position(is_write).unwrap_or_default()
    }

    /// The size of the request, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.operations.iter().map(WriteOp::bytes).sum()
    }
}
