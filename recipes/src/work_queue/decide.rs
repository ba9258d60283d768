//! What is dangerous, as pure functions: whether an item is free, and whether a transaction was applied.

use super::stored::StoredItem;

/// What is known of the node that claims an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClaimNode {
    /// It was not read since the item was.
    Unread,
    /// It existed when it was read, or when the workers were listed.
    Exists,
    /// It did not exist when it was read *after* the item was.
    Missing,
}

/// What to do with an item that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Claim it, at the version that was read.
    Free,
    /// Another worker has it.
    Claimed,
    /// Read the node that claims it.
    ReadClaim,
    /// It is free, and not to be taken before this time of the servers.
    NotDue(i64),
    /// It is free, and was taken as often as it may be: move it to the failed items.
    Exhausted,
}

/// Judges an item that no worker has.
pub(super) fn judge_free(stored: &StoredItem, now: i64, attempts_max: Option<u32>) -> Verdict {
    match stored.due {
        Some(due) if due > now => Verdict::NotDue(due),
        _ if attempts_max.is_some_and(|max| stored.attempts >= max) => Verdict::Exhausted,
        _ => Verdict::Free,
    }
}

/// Judges an item by its data and what is known of the node that claims it.
///
/// The name in the item was written together with a check of that node. So the node exists in every state of
/// the servers from then on until its worker is gone, and names are never used again. If the node is missing
/// in a state that is not older than the data, it is missing for ever.
pub(super) fn judge(stored: &StoredItem, claim: ClaimNode) -> Verdict {
    match (&stored.claim, claim) {
        (None, _) | (Some(_), ClaimNode::Missing) => Verdict::Free,
        (Some(_), ClaimNode::Exists) => Verdict::Claimed,
        (Some(_), ClaimNode::Unread) => Verdict::ReadClaim,
    }
}

/// The answer to a request that is not applied, as far as is known, and that also writes the record of its
/// worker at a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TxnAnswer {
    /// The record has another version.
    RecordRefused,
    /// Another operation was refused, and the record had the right version.
    Refused,
    /// The worker's node does not exist, or its session is over. This request was not applied.
    Lost,
    /// Nothing was applied; another try may be.
    NotNow,
    /// There is no answer. The request may be applied, also later.
    Unknown,
}

/// What follows from an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TxnStep {
    /// The transaction is applied, by an earlier request.
    AppliedBefore,
    /// No request is applied, and none will be.
    NotApplied,
    /// Send the same request again.
    Again,
    /// An earlier request may be applied still: [write the record](after_fence), so that it cannot.
    Fence,
}

/// What follows from the answer to a request. `in_doubt`: an earlier request of the same transaction had no
/// answer.
///
/// The servers try the operations in order, and the write of the record is the first one behind the check of
/// the worker's node.
pub(super) fn after(answer: TxnAnswer, in_doubt: bool) -> TxnStep {
    match (answer, in_doubt) {
        // Only this worker writes its record.
        (TxnAnswer::RecordRefused, true) => TxnStep::AppliedBefore,
        (TxnAnswer::RecordRefused | TxnAnswer::Refused | TxnAnswer::Lost, false) => TxnStep::NotApplied,
        (TxnAnswer::Refused | TxnAnswer::Lost, true) => TxnStep::Fence,
        (TxnAnswer::NotNow | TxnAnswer::Unknown, _) => TxnStep::Again,
    }
}

/// The answer to a write of the record that no transaction can be applied after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FencedRecord {
    /// The record had the version of the transaction, and has the next one now.
    Written,
    /// The record has another version, and is what a transaction writes.
    Committed,
    /// The record has another version, and is what an earlier such write has written.
    Before,
}

/// Whether the transaction in doubt is applied, once its record is fenced. It is final.
pub(super) fn after_fence(fenced: FencedRecord) -> bool {
    match fenced {
        FencedRecord::Committed => true,
        FencedRecord::Written | FencedRecord::Before => false,
    }
}
