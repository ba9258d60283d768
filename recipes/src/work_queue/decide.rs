//! What is dangerous, as pure functions: whether an item is free, whether a transaction was applied,
//! and which directory takes a put.

use super::shard_number::{ShardNumber, ShardStat};
use super::stored::StoredItem;

/// From this number on, nothing is put into a directory: numbers would soon repeat or be negative, and items
/// be lost. A million puts are not in flight at one time.
pub(super) const NUMBER_END: i32 = i32::MAX - 1_000_000;

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

/// What a put does with the last shard that it knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShardVerdict {
    /// It takes the items, in a transaction that checks that it is open still.
    Open,
    /// It has no room for the items: close it, and open the next one.
    Full,
    /// It takes no items any more: look for the last one.
    Closed,
}

/// Judges a shard for a put of `more` items. `size`: how many items it should have at most.
pub(super) fn judge_shard(shard: ShardStat, more: u32, size: u32) -> ShardVerdict {
    let has_room = shard.items == 0 || shard.items.saturating_add(more) <= size;
    let has_numbers = shard.made < NUMBER_END;
    match shard.version {
        0 if has_room && has_numbers => ShardVerdict::Open,
        0 => ShardVerdict::Full,
        _ => ShardVerdict::Closed,
    }
}

/// How many items a process puts before it reads the number of items again, by the room that the last read
/// has found in the queue and in the shard. None where the room is short.
pub(super) fn unread_puts(queue: u32, shard: u32) -> u32 {
    const MOST: u32 = 64;
    const PART: u32 = 16;
    (queue.min(shard) / PART).min(MOST)
}

/// Whether a shard without any child is deleted, at the version that was read. `last`: the last shard.
///
/// A shard that is closed takes no item any more, and has none. Another one could have been given an item
/// since. The first one stays, as the mark that the queue exists.
pub(super) fn is_over(shard: ShardNumber, stat: ShardStat, last: ShardNumber) -> bool {
    let is_closed = stat.version != 0;
    is_closed && stat.items == 0 && shard != ShardNumber::FIRST && shard < last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_is_open_until_its_data_is_written() {
        let judge = |version| judge_shard(ShardStat { version, items: 1, made: 1 }, 1, 10);
        assert_eq!([-1, 0, 1].map(judge), [ShardVerdict::Closed, ShardVerdict::Open, ShardVerdict::Closed]);
    }

    #[test]
    fn a_shard_is_full_when_a_put_has_no_room_or_its_numbers_would_end() {
        let judge = |items, made, more| judge_shard(ShardStat { version: 0, items, made }, more, 10);
        assert_eq!([judge(0, 0, 1), judge(9, 9, 1), judge(8, 1_000, 2)], [ShardVerdict::Open; 3]);
        // A put that no shard has room for has one of its own.
        assert_eq!(judge(0, 20, 11), ShardVerdict::Open);
        let full = [judge(10, 10, 1), judge(9, 9, 2), judge(1, 1, 10), judge(0, NUMBER_END, 1)];
        assert_eq!(full, [ShardVerdict::Full; 4]);
        assert_eq!(judge(1, NUMBER_END - 1, 1), ShardVerdict::Open);
    }

    #[test]
    fn a_put_reads_the_number_of_items_where_the_room_is_short() {
        assert_eq!(
            [(15, 999), (999, 15), (32, 16), (10_000, 100_000)].map(|(q, s)| unread_puts(q, s)),
            [0, 0, 1, 64]
        );
    }

    #[test]
    fn an_empty_shard_is_over_if_it_is_closed_and_neither_the_first_nor_the_last() {
        let [first, one, two] =
            ["items", "items-0000000001", "items-0000000002"].map(|name| ShardNumber::parse(name).unwrap());
        let (open, closed) =
            (ShardStat { version: 0, items: 0, made: 9 }, ShardStat { version: 1, items: 0, made: 9 });
        assert!(is_over(one, closed, two));
        for (shard, stat) in
            [(first, closed), (one, open), (two, closed), (one, ShardStat { items: 1, ..closed })]
        {
            assert!(!is_over(shard, stat, two), "{shard:?} {stat:?}");
        }
    }
}
