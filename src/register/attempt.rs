//! The transaction of one attempt: pure.

use super::decide::{AttemptPart, Basis};
use super::writer::WriterNode;
use crate::wire::{CreateMode, Stat, WriteOp, WriteResult};
use crate::znode::zxid::Zxid;

/// The version that ZooKeeper takes for "any version". A node whose version has overflowed reaches it once in
/// 2³² writes (before ZOOKEEPER-4743).
const ANY: i32 = -1;

/// The operations of one attempt: first the write of the writer node, so its refusal is the one that the
/// servers report. Then that of the node.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) operations: Vec<WriteOp>,
}

impl Attempt {
    /// Writes `data` to the node at `path` if it is the one of `basis`, and `number` to the writer node.
    pub(super) fn new(path: &str, basis: &Basis, data: Vec<u8>, writer: &WriterNode, number: u64) -> Self {
        let mut operations = vec![writer.operation(number)];
        let path = path.to_owned();
        match basis.as_ref().map(|content| content.version) {
            None => operations.push(WriteOp::Create { path, data, mode: CreateMode::Persistent }),
            Some(version) if version == ANY => {
                // No condition can name this version. So the condition comes behind the write, in the same
                // transaction: the version after −1 is 0.
                let check = WriteOp::Check { path: path.clone(), version: Some(0) };
                operations.extend([WriteOp::SetData { path, data, version: None }, check]);
            }
            Some(version) => operations.push(WriteOp::SetData { path, data, version: Some(version) }),
        }
        Self { operations }
    }

    /// The node that the operation with this index is about.
    pub(super) fn part(index: usize) -> AttemptPart {
        if index == 0 { AttemptPart::Writer } else { AttemptPart::Node }
    }

    /// The zxid of an attempt that was applied. The answer to a create has none before 3.8.2
    /// (ZOOKEEPER-4026), that to the write of the writer node has one.
    pub(super) fn zxid(results: &[WriteResult]) -> Option<Zxid> {
        let [WriteResult::Written(stat), ..] = results else { return None };
        Some(stat.mzxid)
    }

    /// The node after the write; `None` if it was created.
    pub(super) fn written(results: &[WriteResult]) -> Option<&Stat> {
        let [_, WriteResult::Written(stat), ..] = results else { return None };
        Some(stat)
    }

    /// The size of the request, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.operations.iter().map(WriteOp::bytes).sum()
    }
}
