//! The changes that wait for their turn, and those that are applied together.

use std::collections::VecDeque;

use tokio::sync::oneshot;

use super::decide::{Basis, Change, Current};
use super::doubts::Doubts;
use crate::error::Error;
use crate::time::deadline::Deadline;
use crate::znode::zxid::Zxid;

/// At most so many changes are applied together.
const CHANGES_MAX: usize = 10_000;

/// Decides a change from a state.
pub(super) type Decide = Box<dyn FnMut(Current<'_>) -> Change + Send>;

/// A change that was asked for.
pub(super) struct ChangeRequest {
    pub(super) number: u64,
    pub(super) decide: Decide,
    /// The change never writes.
    pub(super) is_read: bool,
    /// It was put back, and is taken without changes of other calls that write.
    pub(super) was_put_back: bool,
    pub(super) deadline: Deadline,
    /// `None` once it was answered.
    pub(super) done: Option<oneshot::Sender<Result<Zxid, Error>>>,
}

impl ChangeRequest {
    fn is_answered(&self) -> bool {
        self.done.is_none()
    }

    fn answer(&mut self, result: Result<Zxid, Error>) {
        if let Some(done) = self.done.take() {
            // A caller that has gone does not read its answer.
            let _ = done.send(result);
        }
    }

    /// Whether its caller has gone.
    fn is_dropped(&self) -> bool {
        self.done.as_ref().is_some_and(oneshot::Sender::is_closed)
    }
}

/// The changes that wait, in the order of their calls.
#[derive(Default)]
pub(super) struct ChangeQueue {
    next: u64,
    waiting: VecDeque<ChangeRequest>,
}

impl ChangeQueue {
    /// Adds a change, and returns its number.
    pub(super) fn push(&mut self, mut request: ChangeRequest) -> u64 {
        request.number = self.next;
        self.next += 1;
        self.waiting.push_back(request);
        self.next - 1
    }

    /// Removes a change that still waits. Returns `false` if it was taken.
    pub(super) fn remove(&mut self, number: u64) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|request| request.number != number);
        self.waiting.len() < before
    }

    /// Puts reads back to the front. What becomes of the changes of other calls no longer concerns them.
    pub(super) fn put_back(&mut self, reads: Vec<ChangeRequest>) {
        for read in reads.into_iter().rev() {
            self.waiting.push_front(ChangeRequest { was_put_back: true, ..read });
        }
    }

    /// Takes the changes to apply together. Those that nobody waits for are left out.
    pub(super) fn take(&mut self, combines: bool) -> Option<Batch> {
        self.waiting.retain(|request| !request.is_dropped());
        let first = self.waiting.front()?;
        let (first_is_read, combines) = (first.is_read, combines && !first.was_put_back);
        let joins =
            |at: usize, request: &ChangeRequest| combines || at == 0 || (first_is_read && request.is_read);
        let taken = self.waiting.iter().take(CHANGES_MAX).enumerate();
        let count = taken.take_while(|(at, request)| joins(*at, request)).count();
        Some(Batch { requests: self.waiting.drain(..count).collect() })
    }

    /// Takes everything, to answer with an error.
    pub(super) fn drain(&mut self) -> Vec<ChangeRequest> {
        self.waiting.drain(..).collect()
    }
}

/// Changes that are applied together.
pub(super) struct Batch {
    requests: Vec<ChangeRequest>,
}

impl Batch {
    /// The earliest deadline of those that wait for their answer.
    pub(super) fn deadline(&self) -> Deadline {
        let waiting = self.requests.iter().filter(|request| !request.is_answered());
        let deadlines = waiting.map(|request| request.deadline);
        deadlines.reduce(Deadline::earlier).unwrap_or_else(Deadline::immediate)
    }

    /// Whether no change writes.
    pub(super) fn is_read(&self) -> bool {
        self.requests.iter().all(|request| request.is_read)
    }

    /// Decides all changes, one after the other. Returns the data to write, if there is a write.
    pub(super) fn decide(&mut self, basis: &Basis) -> Option<Vec<u8>> {
        let mut written: Option<Vec<u8>> = None;
        for request in &mut self.requests {
            let current = written.as_deref().map_or_else(|| Current::of(basis), Current::pending);
            if let Change::Write(data) = (request.decide)(current) {
                written = Some(data);
            }
        }
        written
    }

    /// Removes the changes that never write.
    pub(super) fn remove_reads(&mut self) -> Vec<ChangeRequest> {
        let (reads, changes) =
            std::mem::take(&mut self.requests).into_iter().partition(|request| request.is_read);
        self.requests = changes;
        reads
    }

    /// Answers every change.
    pub(super) fn end(self, result: &Result<Zxid, Error>) {
        for mut request in self.requests {
            request.answer(result.clone());
        }
    }

    /// Answers those whose deadline has passed, and leaves them out from now on, unless an attempt with them
    /// may be applied. Returns whether others wait.
    pub(super) fn end_expired(&mut self, error: &Error, doubts: &Doubts) -> bool {
        for request in self.requests.iter_mut().filter(|request| request.deadline.has_passed()) {
            request.answer(Err(error.clone()));
        }
        if doubts.is_empty() {
            self.requests.retain(|request| !request.is_answered());
        }
        self.requests.iter().any(|request| !request.is_answered())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::register::decide::Content;

    fn request(is_read: bool) -> (ChangeRequest, oneshot::Receiver<Result<Zxid, Error>>) {
        let (done, answer) = oneshot::channel();
        let decide = move |current: Current<'_>| match is_read {
            true => Change::Keep,
            false => Change::Write([current.data().unwrap_or_default(), b"x"].concat()),
        };
        (
            ChangeRequest {
                number: 0,
                decide: Box::new(decide),
                is_read,
                was_put_back: false,
                deadline: Deadline::never(),
                done: Some(done),
            },
            answer,
        )
    }

    #[test]
    fn a_register_that_combines_takes_all_and_another_one_takes_one_write() {
        for (combines, kinds, sizes) in [
            (true, &[false, true, false][..], &[3][..]),
            (false, &[false, true, false], &[1, 1, 1]),
            (false, &[true, true, false], &[2, 1]),
        ] {
            let mut queue = ChangeQueue::default();
            let answers: Vec<_> = kinds
                .iter()
                .map(|is_read| {
                    let (request, answer) = request(*is_read);
                    queue.push(request);
                    answer
                })
                .collect();
            let taken = std::iter::from_fn(|| queue.take(combines)).map(|batch| batch.requests.len());
            assert_eq!(taken.collect::<Vec<_>>(), sizes, "{combines} {kinds:?}");
            drop(answers);
        }
    }

    #[test]
    fn reads_that_were_put_back_are_taken_without_changes_that_write() {
        let mut queue = ChangeQueue::default();
        let _answers = [true, false, true].map(|is_read| {
            let (request, answer) = request(is_read);
            queue.push(request);
            answer
        });
        let mut batch = queue.take(true).unwrap();
        let _later = [true, false].map(|is_read| {
            let (request, answer) = request(is_read);
            queue.push(request);
            answer
        });
        queue.put_back(batch.remove_reads());
        let taken = std::iter::from_fn(|| queue.take(true)).map(|batch| batch.requests.len());
        assert_eq!(taken.collect::<Vec<_>>(), [3, 1], "three reads, and the write behind them");
    }

    #[test]
    fn each_change_is_decided_from_the_state_that_the_one_before_leaves() {
        let mut queue = ChangeQueue::default();
        let _answers = [request(false), request(true), request(false)].map(|(request, answer)| {
            queue.push(request);
            answer
        });
        let mut batch = queue.take(true).unwrap();
        let content = Content { data: (*b"a").into(), czxid: Zxid::new(1), mzxid: Zxid::new(1), version: 0 };
        assert_eq!(batch.decide(&Some(content)).as_deref(), Some(&b"axx"[..]));
        assert_eq!(batch.decide(&None).as_deref(), Some(&b"xx"[..]), "decided anew from another state");
    }

    #[test]
    fn a_change_that_was_removed_is_not_taken() {
        let mut queue = ChangeQueue::default();
        let (removed, _first) = request(false);
        let number = queue.push(removed);
        let (kept, _second) = request(false);
        queue.push(kept);
        assert!(queue.remove(number) && !queue.remove(number));
        let taken = queue.take(true).unwrap();
        assert_eq!(taken.requests.iter().map(|request| request.number).collect::<Vec<_>>(), [number + 1]);
    }

    #[test]
    fn a_change_whose_call_has_ended_stays_in_its_batch_only_while_an_attempt_is_in_doubt() {
        let error = Error::Timeout {
            phase: crate::error::Phase::Connecting,
            path: "/register".into(),
            waited: std::time::Duration::ZERO,
        };
        for (in_doubt, is_alone, left, others_wait) in
            [(false, false, 1, true), (true, false, 2, true), (false, true, 0, false), (true, true, 1, false)]
        {
            let (expired, mut ended) = request(false);
            let (with_time, mut waiting) = request(false);
            let mut batch =
                Batch { requests: vec![ChangeRequest { deadline: Deadline::immediate(), ..expired }] };
            if !is_alone {
                batch.requests.push(with_time);
            }
            let mut doubts = Doubts::default();
            if in_doubt {
                doubts.add(1, "/register/writer-1", &None);
            }
            assert_eq!(batch.end_expired(&error, &doubts), others_wait, "{in_doubt} {is_alone}");
            assert_eq!(batch.requests.len(), left, "{in_doubt} {is_alone}");
            assert!(ended.try_recv().is_ok_and(|answer| answer.is_err()) && waiting.try_recv().is_err());
        }
    }

    #[test]
    fn a_change_that_nobody_waits_for_is_not_taken() {
        let mut queue = ChangeQueue::default();
        let (gone, answer) = request(false);
        drop(answer);
        let number = queue.push(gone);
        assert!(queue.take(true).is_none() && !queue.remove(number));
    }
}
