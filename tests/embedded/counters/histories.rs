//! Histories of counters and values under random faults, judged by a checker.

use std::sync::Arc;

use lockkeeper::value::CompareAndSet;
use lockkeeper::{ConnectionManager, Counter, Error, SharedValue};
use lockkeeper_tests::{NumberAnswer, NumberCall, NumberHistory};
use lockkeeper_testserver::{Fault, Op, When};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::{change, client, counter};
use crate::limit::within;
use crate::server_fixture::ServerFixture;

const PROCESSES: u64 = 3;
const TASKS_EACH: u64 = 2;
const CALLS_EACH: u64 = 10;

fn answer(set: CompareAndSet<i64>) -> NumberAnswer {
    match set {
        CompareAndSet::Set(_) => NumberAnswer::Set,
        CompareAndSet::Differs(number) => NumberAnswer::Differs(number),
    }
}

async fn call_counter(counter: &Counter, what: NumberCall) -> Result<NumberAnswer, Error> {
    Ok(match what {
        NumberCall::Get => NumberAnswer::Number(counter.get().await?),
        NumberCall::Add(number) => NumberAnswer::Number(counter.add(number).await?),
        NumberCall::CompareAndSet(expected, new) => answer(counter.compare_and_set(expected, new).await?),
        NumberCall::Set(number) => {
            counter.set(number).await?;
            NumberAnswer::Set
        }
    })
}

/// Calls at random, and faults at random: of links, of answers, of sessions.
async fn run(seed: u64) -> NumberHistory {
    let server_fixture = ServerFixture::start().await.unwrap();
    let history = Arc::new(NumberHistory::default());
    let mut rng = StdRng::seed_from_u64(seed);
    // One that strikes in any case, and others that may.
    let begun = server_fixture.server.fault(change().nth(5), Fault::DropConnectionAfter);
    let _faults: Vec<_> = (0..8)
        .map(|_| {
            let fault = match rng.random_range(0..4) {
                0 => Fault::DropConnectionAfter,
                1 => Fault::DropConnectionBefore,
                2 => Fault::DelayReply(std::time::Duration::from_millis(20)),
                _ => Fault::DelayRequest(std::time::Duration::from_millis(20)),
            };
            let ops = [Op::Multi, Op::Multi, Op::GetData];
            let when = When::op(ops[rng.random_range(0..ops.len())]).nth(rng.random_range(1..40));
            server_fixture.server.fault(when, fault)
        })
        .collect();
    let mut tasks = Vec::new();
    for process in 0..PROCESSES {
        let counter = counter(&client(&server_fixture).await);
        for task in 0..TASKS_EACH {
            let (counter, history) = (counter.clone(), Arc::clone(&history));
            let mut rng = StdRng::seed_from_u64(seed * 1_000 + process * 10 + task);
            tasks.push(tokio::spawn(async move {
                let mut seen = 0;
                for _ in 0..CALLS_EACH {
                    let what = match rng.random_range(0..10) {
                        0..5 => NumberCall::Add(rng.random_range(-3..9)),
                        5..7 => NumberCall::Get,
                        7..9 => NumberCall::CompareAndSet(seen, rng.random_range(0..50)),
                        _ => NumberCall::Set(rng.random_range(0..50)),
                    };
                    let answer = history.record(what, call_counter(&counter, what)).await;
                    match answer {
                        Ok(NumberAnswer::Number(number) | NumberAnswer::Differs(number)) => seen = number,
                        Ok(NumberAnswer::Set) | Err(_) => {}
                    }
                }
            }));
        }
    }
    let ends_session = rng.random_bool(0.5);
    let session = server_fixture.sessions_of_actor()[0];
    if ends_session {
        within("the fifth change", begun.hit()).await.unwrap();
        server_fixture.server.expire(session);
    }
    for task in tasks {
        within("the calls", task).await.unwrap().unwrap();
    }
    Arc::into_inner(history).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_of_a_counter_are_linearizable_under_faults() {
    for seed in 0..12 {
        let history = within("the history", run(seed)).await.unwrap();
        history.check(0).unwrap_or_else(|found| panic!("seed {seed}: {found}"));
    }
}

async fn next_of(manager: &ConnectionManager, history: &NumberHistory, rounds: u64) -> Result<u64, Error> {
    let value = SharedValue::<i64>::new(manager, "/values/next", 0)?;
    let mut done = 0;
    let mut seen = value.get().await?;
    while done < rounds {
        let (expected, new) = (seen.value, seen.value + 1);
        let mut current = None;
        let call = async {
            let set = value.compare_and_set(seen.revision, new).await?;
            current = Some(set.into_current());
            Ok(match set {
                CompareAndSet::Set(_) => NumberAnswer::Set,
                CompareAndSet::Differs(other) => NumberAnswer::Differs(other.value),
            })
        };
        // Each value is written once, so the revision and the value are one condition.
        let answer = history.record(NumberCall::CompareAndSet(expected, new), call).await;
        done += u64::from(matches!(answer, Ok(NumberAnswer::Set)));
        seen = match current {
            Some(current) => current,
            None => value.get().await?,
        };
    }
    Ok(done)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditional_writes_of_a_shared_value_are_linearizable_under_faults() {
    for fault in [Fault::DropConnectionAfter, Fault::DropConnectionBefore] {
        let server_fixture = ServerFixture::start().await.unwrap();
        let history = NumberHistory::default();
        let (one, two) = (client(&server_fixture).await, client(&server_fixture).await);
        let lost: Vec<_> =
            (1..=6).map(|n| server_fixture.server.fault(When::op(Op::Multi).nth(n * 5), fault)).collect();
        let both = async { tokio::try_join!(next_of(&one, &history, 20), next_of(&two, &history, 20)) };
        within("the writes", both).await.unwrap().unwrap();
        assert!(lost.iter().all(|lost| lost.hits() == 1));
        history.check(0).unwrap();
        assert_eq!(history.unknown_count(), 0);
    }
}
