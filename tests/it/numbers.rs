//! Counters on an ensemble whose leaders are killed, judged by a linearizability checker.

use std::sync::Arc;

use lockkeeper::value::CompareAndSet;
use lockkeeper::{Counter, Error};
use lockkeeper_tests::{Ensemble, NumberAnswer, NumberCall, NumberHistory, Timing, eventually, left_out};
use tokio::sync::watch;

use crate::support::connect;

const PATH: &str = "/numbers/visits";
/// The clients, and the calls of each.
const CLIENTS: i64 = 3;
const CALLS: i64 = 60;

async fn call(counter: &Counter, what: NumberCall) -> Result<NumberAnswer, Error> {
    Ok(match what {
        NumberCall::Get => NumberAnswer::Number(counter.get().await?),
        NumberCall::Add(number) => NumberAnswer::Number(counter.add(number).await?),
        NumberCall::CompareAndSet(expected, new) => match counter.compare_and_set(expected, new).await? {
            CompareAndSet::Set(_) => NumberAnswer::Set,
            CompareAndSet::Differs(number) => NumberAnswer::Differs(number),
        },
        NumberCall::Set(number) => {
            counter.set(number).await?;
            NumberAnswer::Set
        }
    })
}

/// A third of the calls before each kill of a leader, and a third after both.
async fn calls(counter: Counter, history: Arc<NumberHistory>, mut kills: watch::Receiver<i64>) {
    let mut seen = 0;
    for number in 0..CALLS {
        kills.wait_for(|kills| *kills >= number * 3 / CALLS).await.expect("the kills continue");
        let what = match number % 6 {
            0..3 => NumberCall::Add(number),
            3 => NumberCall::Get,
            4 => NumberCall::CompareAndSet(seen, 1_000 + number),
            _ => NumberCall::Add(-number),
        };
        if let Ok(NumberAnswer::Number(number) | NumberAnswer::Differs(number)) =
            history.record(what, call(&counter, what)).await
        {
            seen = number;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_of_a_counter_are_linearizable_while_leaders_are_killed() {
    if left_out() {
        return;
    }
    let ensemble = Ensemble::builder().servers(3).lend().await.unwrap();
    let history = Arc::new(NumberHistory::default());
    let (killed, kills) = watch::channel(0);
    let mut tasks = Vec::new();
    for _ in 0..CLIENTS {
        let manager = connect(&ensemble.connect_string()).await;
        let counter = Counter::new(&manager, PATH).unwrap();
        tasks.push(tokio::spawn(calls(counter, Arc::clone(&history), kills.clone())));
    }
    for (kill, begun) in [(1, 30), (2, 90)] {
        eventually("calls to begin", Timing::settle(), async || {
            (history.begun_count() >= begun).then_some(())
        })
        .await
        .unwrap();
        let leader = ensemble.leader().await.unwrap();
        leader.kill().await.unwrap();
        killed.send(kill).unwrap();
        leader.restart().await.unwrap();
        ensemble.settled().await.unwrap();
    }
    for task in tasks {
        tokio::time::timeout(Timing::settle() * 2, task).await.expect("every call ends").unwrap();
    }
    history.check(0).unwrap();
}
