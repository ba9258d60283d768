//! The blocks of a process: pure.

use lockkeeper_core::Error;

/// The ids that this process owns, and the request for more.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    present: Block,
    /// The block behind the present one.
    next: Option<Block>,
    is_fetching: bool,
    /// Why the last request failed.
    failure: Option<Error>,
    /// The greatest id that this process has owned.
    greatest: Option<i64>,
    went_back: Option<WentBack>,
}

/// A block with ids that this process has owned before. Another process may have it, too, or may have had it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WentBack {
    /// The greatest id that this process has owned.
    pub(super) greatest: i64,
    /// The first id of the block.
    pub(super) first: i64,
}

/// The ids from `next` to `last`. Empty by default.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    next: i64,
    left: u32,
    size: u32,
}

/// What a caller gets.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) id: Option<i64>,
    /// The next block is to be requested.
    pub(super) is_low: bool,
}

impl Blocks {
    /// Takes the next id.
    pub(super) fn take(&mut self) -> Taken {
        if self.present.left == 0 {
            self.present = self.next.take().unwrap_or(self.present);
        }
        let block = &mut self.present;
        let id = (block.left > 0).then_some(block.next);
        if id.is_some() {
            // The last id may be the greatest number: there is none behind it, and none is taken.
            block.next = block.next.saturating_add(1);
            block.left -= 1;
        }
        let is_low = block.left <= block.size / 2 && self.may_fetch();
        Taken { id, is_low }
    }

    fn may_fetch(&self) -> bool {
        self.next.is_none() && !self.is_fetching && self.went_back.is_none()
    }

    /// Returns `false` if a block is requested already, or there is one, or the counter went back.
    pub(super) fn begin_fetch(&mut self) -> bool {
        let begins = self.may_fetch();
        self.is_fetching |= begins;
        begins
    }

    /// Records the answer: the counter after the addition of `size`. `None`: the request ended without one.
    pub(super) fn end_fetch(&mut self, size: u32, added: Option<Result<i64, Error>>) {
        self.is_fetching = false;
        match added {
            Some(Ok(last)) => {
                // The block ends with the sum. Its first id cannot be out of range: the addition began there.
                let first = last - i64::from(size) + 1;
                self.failure = None;
                match self.greatest {
                    Some(greatest) if first <= greatest => {
                        self.went_back = Some(WentBack { greatest, first });
                    }
                    _ => {
                        self.next = Some(Block { next: first, left: size, size });
                        self.greatest = Some(last);
                    }
                }
            }
            Some(Err(error)) => self.failure = Some(error),
            None => {}
        }
    }

    /// The proof that the counter went back. No block is taken any more: one with greater ids may be that of
    /// another process.
    pub(super) fn went_back(&self) -> Option<WentBack> {
        self.went_back
    }

    /// Why the last request failed. It is returned once.
    pub(super) fn take_failure(&mut self) -> Option<Error> {
        self.failure.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_follow_each_other_and_the_next_block_is_requested_at_half() {
        let mut blocks = Blocks::default();
        assert_eq!(blocks.take(), Taken { id: None, is_low: true });
        assert!(blocks.begin_fetch() && !blocks.begin_fetch());
        blocks.end_fetch(4, Some(Ok(4)));
        let taken: Vec<_> = (0..3).map(|_| blocks.take()).collect();
        let ids = [(1, false), (2, true), (3, true)];
        assert_eq!(taken, ids.map(|(id, is_low)| Taken { id: Some(id), is_low }));
        assert!(blocks.begin_fetch());
        assert_eq!(blocks.take(), Taken { id: Some(4), is_low: false });
        assert_eq!(blocks.take(), Taken { id: None, is_low: false }, "the request is on its way");
        blocks.end_fetch(4, Some(Ok(12)));
        assert_eq!(blocks.take().id, Some(9), "another process took the ids before");
    }

    #[test]
    fn the_last_ids_of_all_are_given_out_once() {
        let mut blocks = Blocks::default();
        assert!(blocks.begin_fetch());
        blocks.end_fetch(2, Some(Ok(i64::MAX)));
        let ids = [(); 3].map(|()| blocks.take().id);
        assert_eq!(ids, [Some(i64::MAX - 1), Some(i64::MAX), None]);
    }

    #[test]
    fn a_counter_that_went_back_gives_no_id_that_was_given_out_before_and_none_behind_it() {
        for sum in [1, 4, 5, 7] {
            let mut blocks = Blocks::default();
            assert!(blocks.begin_fetch());
            blocks.end_fetch(4, Some(Ok(4)));
            assert_eq!(blocks.take().id, Some(1));
            assert!(blocks.begin_fetch());
            blocks.end_fetch(4, Some(Ok(sum)));
            let given = std::iter::from_fn(|| blocks.take().id);
            assert_eq!(given.collect::<Vec<_>>(), [2, 3, 4], "{sum}");
            assert_eq!(blocks.went_back(), Some(WentBack { greatest: 4, first: sum - 3 }));
            assert!(!blocks.begin_fetch() && !blocks.take().is_low, "for ever");
        }
    }

    #[test]
    fn a_request_that_failed_or_was_abandoned_is_followed_by_another() {
        let mut blocks = Blocks::default();
        assert!(blocks.begin_fetch());
        blocks.end_fetch(2, Some(Err(Error::Closed)));
        assert!(blocks.take_failure().is_some() && blocks.take_failure().is_none());
        assert!(blocks.begin_fetch());
        blocks.end_fetch(2, None);
        assert!(blocks.begin_fetch());
    }
}
