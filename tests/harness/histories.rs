//! Histories of a number, judged by a checker.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};

use lockkeeper::Error;
use lockkeeper::error::Outcome;
use parking_lot::Mutex;
use stateright::semantics::{ConsistencyTester, LinearizabilityTester, SequentialSpec};

/// A call on a number that clients share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberCall {
    /// Reads it.
    Get,
    /// Adds to it.
    Add(i64),
    /// Sets it to the second number if it is the first.
    CompareAndSet(i64, i64),
    /// Sets it.
    Set(i64),
}

/// What a call returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberAnswer {
    /// The number, or the sum.
    Number(i64),
    /// It was set.
    Set,
    /// It was another number than the expected one: this one.
    Differs(i64),
}

/// The number, as one thread alone would see it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Number(i64);

impl SequentialSpec for Number {
    type Op = NumberCall;
    type Ret = NumberAnswer;

    fn invoke(&mut self, call: &NumberCall) -> NumberAnswer {
        match *call {
            NumberCall::Get => NumberAnswer::Number(self.0),
            NumberCall::Add(number) => {
                self.0 += number;
                NumberAnswer::Number(self.0)
            }
            NumberCall::CompareAndSet(expected, _) if self.0 != expected => NumberAnswer::Differs(self.0),
            NumberCall::CompareAndSet(_, new) | NumberCall::Set(new) => {
                self.0 = new;
                NumberAnswer::Set
            }
        }
    }
}

/// The calls on a number and their answers, in the order in which they happened.
#[derive(Debug, Default)]
pub struct NumberHistory {
    events: Mutex<Vec<Event>>,
    calls: AtomicU64,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Started { call: u64, what: NumberCall },
    Ended { call: u64, how: Ended },
}

#[derive(Clone, Copy, Debug)]
enum Ended {
    Answered(NumberAnswer),
    NotApplied,
    Unknown,
}

impl NumberHistory {
    /// Makes a call, and records it. A call that is dropped counts as one of unknown outcome.
    ///
    /// # Errors
    ///
    /// The error of the call.
    pub async fn record(
        &self,
        what: NumberCall,
        work: impl Future<Output = Result<NumberAnswer, Error>>,
    ) -> Result<NumberAnswer, Error> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        self.events.lock().push(Event::Started { call, what });
        let result = work.await;
        let how = match &result {
            Ok(answer) => Ended::Answered(*answer),
            Err(error) if error.outcome() == Outcome::NotApplied => Ended::NotApplied,
            Err(_) => Ended::Unknown,
        };
        self.events.lock().push(Event::Ended { call, how });
        result
    }

    /// The calls that began.
    pub fn begun_count(&self) -> usize {
        self.events.lock().iter().filter(|event| matches!(event, Event::Started { .. })).count()
    }

    /// The calls that ended with an unknown outcome, or did not end.
    pub fn unknown_count(&self) -> usize {
        let events = self.events.lock();
        let known = |event: &&Event| {
            matches!(event, Event::Ended { how: Ended::Answered(_) | Ended::NotApplied, .. })
        };
        events.iter().filter(|event| matches!(event, Event::Started { .. })).count()
            - events.iter().filter(known).count()
    }

    /// Whether some order of the calls explains all answers: an order in which a call that ended before
    /// another one began comes before it. A call of unknown outcome may have happened at any time since its
    /// beginning, or never.
    ///
    /// # Errors
    ///
    /// The history, if there is no such order.
    pub fn check(&self, first: i64) -> Result<(), String> {
        let events = self.events.lock().clone();
        let is_void = |call: u64| {
            let ended = events.iter().find_map(|event| match event {
                Event::Ended { call: ended, how } if *ended == call => Some(*how),
                _ => None,
            });
            matches!(ended, Some(Ended::NotApplied))
        };
        let mut tester = LinearizabilityTester::new(Number(first));
        // One thread of the checker for each call that is in progress; a call without an end keeps its own.
        let (mut free, mut threads) = (Vec::new(), 0_u64);
        let mut busy = std::collections::BTreeMap::new();
        for event in &events {
            match event {
                Event::Started { call, what } if !is_void(*call) => {
                    let thread = free.pop().unwrap_or_else(|| {
                        threads += 1;
                        threads
                    });
                    busy.insert(*call, thread);
                    tester.on_invoke(thread, *what)?;
                }
                Event::Ended { call, how: Ended::Answered(answer) } => {
                    let Some(thread) = busy.remove(call) else { return Err(format!("no call {call}")) };
                    tester.on_return(thread, *answer)?;
                    free.push(thread);
                }
                Event::Started { .. } | Event::Ended { .. } => {}
            }
        }
        match tester.is_consistent() {
            true => Ok(()),
            false => Err(format!("no order of the calls explains their answers: {events:#?}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use lockkeeper::error::{Operation, WholePath};

    use super::*;

    fn answered(number: i64) -> Result<NumberAnswer, Error> {
        Ok(NumberAnswer::Number(number))
    }

    fn unknown() -> Result<NumberAnswer, Error> {
        let (operation, path) = (Operation::Write, WholePath::from("/n"));
        Err(Error::Unknown { operation, path, cause: String::new() })
    }

    async fn history(calls: &[(NumberCall, Result<NumberAnswer, Error>)]) -> NumberHistory {
        let history = NumberHistory::default();
        for (call, result) in calls {
            let _ = history.record(*call, async { result.clone() }).await;
        }
        history
    }

    #[tokio::test]
    async fn an_addition_that_counts_twice_or_not_at_all_is_found() {
        use NumberCall::{Add, Get};
        for (calls, is_right) in [
            (vec![(Add(1), answered(1)), (Add(1), answered(2)), (Get, answered(2))], true),
            (vec![(Add(1), answered(1)), (Add(1), answered(3))], false),
            (vec![(Add(1), answered(1)), (Get, answered(0))], false),
            (vec![(Add(1), unknown()), (Get, answered(1))], true),
            (vec![(Add(1), unknown()), (Get, answered(0)), (Get, answered(1))], true),
            (vec![(Add(1), unknown()), (Get, answered(1)), (Get, answered(0))], false),
            (vec![(Add(1), unknown()), (Get, answered(2))], false),
            (vec![(Add(1), Err(Error::Closed)), (Get, answered(0))], true),
        ] {
            let history = history(&calls).await;
            assert_eq!(history.check(0).is_ok(), is_right, "{calls:?}");
        }
    }
}
